// What the parts of a check share: the options, the report, and the one way to move something
// aside. Used only in this folder.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/record.h"
#include "record/fsck/fsck.h"

namespace athanor {

class Database;
class Statement;
struct ArtifactSum;
struct Migration;

// Hints of several parts.
inline constexpr char kRestore[] =
    "ath server restore BACKUP    (with ATHANOR_HOME set to an empty folder)";
inline constexpr char kRepair[] = "ath fsck --repair";

class Checker {
 public:
  Checker(const StoreLayout& layout, const FsckOptions& options)
      : layout_(layout), options_(options) {}

  Result<FsckReport> Run();

 private:
  // The name of a blob; `size` if it is known.
  struct Named {
    std::optional<uint64_t> size;
    std::string by;  // "the source of job brisk-heron"
  };

  Finding& Add(std::string part, std::string what, std::string why, std::string hint,
               std::string where = {});
  // Moves a file or folder below lost+found, under its own path beneath the home.
  Status PutAside(const std::string& path);
  // A free name for it there.
  Result<std::string> PlaceAside(const std::string& path) const;
  // The same for a copy: `path` stays.
  Status CopyAside(const std::string& path);
  // Marks the finding as repaired if `done` is ok, otherwise adds why not.
  static void Settle(Finding& finding, const Status& done);

  // fsck_database.cc
  Status CheckDatabase();
  Status CheckIntegrity(Database& database);
  Status CheckJobs(Database& database);
  Status CheckEvents(Database& database);
  Status CheckOutbox(Database& database);
  Status CheckKeys(Database& database);
  Status CheckSecrets(Database& database);
  void CheckRecord(const JobRecord& record);
  void CheckColumns(const JobRecord& record, const Statement& row);
  void MendDatabase();

  // fsck_pages.cc
  void CheckLogOf(const std::string& database);
  Status CheckPagesOf(const std::string& path, std::span<const Migration> migrations);

  // fsck_kept.cc
  void CheckIngestKey();
  void CheckEventFiles();
  void CheckEventFolder(const std::string& folder, int depth);
  void CheckEventFile(const std::string& path);
  void CheckArtifactsBeneath(const std::string& folder, int depth);
  void CheckArtifact(const std::string& path, const std::vector<ArtifactSum>& sums);

  // fsck_files.cc
  void NameBlobs(const JobRecord& record);
  void NameBlob(const std::string& sha256, std::optional<uint64_t> size, const std::string& by);
  void NameBundle(const std::string& sha256, const std::string& what);
  Status ReadRuns(Database& database);
  void CheckBlobs();
  void CheckBlob(const std::string& sha256, const Named& named);
  Status CheckSeries();
  void CheckSeriesFile(JobId job, const std::string& path);
  Status CheckLogs();
  void CheckLog(JobId job, const std::string& folder);
  Status CheckCheckpoints();
  void CheckFenceIn(const std::string& folder);
  void CheckManifestFile(const std::string& path, const std::vector<std::string>& folders);
  Status CheckObjects();  // fsck_objects.cc
  Status CheckLeftovers();
  void Leftover(const std::string& path, const std::string& what);

  const StoreLayout layout_;
  const FsckOptions options_;
  FsckReport report_;
  std::vector<JobRecord> mend_columns_;  // records whose columns must be made again
  std::vector<int64_t> mend_outbox_;     // effects to drop
  bool jobs_known_ = false;              // every job was read: leftovers can be recognised
  std::set<JobId> jobs_;
  std::set<JobId> runs_;                 // jobs or not
  std::map<AttemptId, JobId> attempts_;  // all of them
  std::set<AttemptId> live_attempts_;    // and those that may have a folder
  std::map<JobId, uint64_t> event_seq_;
  std::map<JobId, JobState> states_;
  std::map<JobId, std::pair<std::string, std::string>> keys_;  // key, spec hash
  std::map<std::string, Named> named_;                         // by sha256
  std::set<std::string> bundles_;                              // whose manifest was read
};

}  // namespace athanor
