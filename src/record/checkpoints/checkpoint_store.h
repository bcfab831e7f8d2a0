// CheckpointStore keeps the checkpoints of one job: manifests in their own folder, the bytes as
// parts in a BlobStore that belongs only to this job, so that removing a checkpoint can remove its
// parts. A checkpoint exists once its manifest was renamed into place, and is complete or invisible
// after any kill. It does not look at the script's files: run/checkpoint does.
//
// Attempts are fenced: after a later one took over, commits of an older one are refused. Threads
// and processes: every call is safe from any; writers hold a file lock in the folder. Copies share
// the folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "job/record.h"
#include "job/spec.h"
#include "record/checkpoints/checkpoint_manifest.h"
#include "record/objects/blob_store.h"

namespace athanor {

class CheckpointStore {
 public:
  // The metric's value at a step, for keep_best; none if there is none.
  using ValueOf = std::function<std::optional<double>(int64_t step)>;

  struct Damage {
    std::string id;
    Error error;
  };
  struct Listing {
    std::vector<CheckpointInfo> checkpoints;  // newest first
    std::vector<Damage> damaged;              // manifests that cannot be read, newest first
  };
  struct Found {
    std::optional<CheckpointManifest> manifest;
    std::vector<Damage> passed_over;  // newer ones that are not complete
  };

  // Creates the folder if needed. `shared_dir`: where the files of manifests are that say `shared`;
  // needed only to find out whether those are complete. Empty: on another machine.
  static Result<CheckpointStore> Open(std::string manifest_dir, BlobStore parts,
                                      std::string shared_dir = {});

  // From now on only `attempt` and later ones may commit; durable when it returns.
  // The first call of an attempt also removes parts that no checkpoint names (of syncs
  // that were never finished). kConflict: a later attempt has taken over already.
  Status Fence(uint32_t attempt);
  // kCorrupt: the record of attempts and used names is damaged; until it is moved aside, no attempt
  // of the job can store a checkpoint.
  static Status CheckFence(const std::string& manifest_dir);

  // Gives `manifest` the next id of `manifest.info.attempt`, counts files and bytes, and makes it
  // durable. Its parts must exist: kNotFound names one that does not (it was removed meanwhile:
  // store it again). kConflict: fenced off. kInvalid: CheckManifest.
  Result<CheckpointInfo> Commit(CheckpointManifest manifest);

  // What the manifests say; parts are not checked.
  Result<Listing> List() const;
  // kNotFound, kCorrupt, kInvalid (not an id).
  Result<CheckpointManifest> Load(std::string_view id) const;
  // Whether all parts (or shared files) exist with the right sizes; their bytes are not read.
  // kCorrupt and kNotFound name the file.
  Status CheckWhole(const CheckpointManifest& manifest) const;
  // The newest that can be read and is complete; `before`: only older ones than this id.
  Result<Found> Newest(std::string_view before = {}) const;

  // Removes the manifest, then those of its parts that no other manifest names. Succeeds if there
  // is none. No parts are removed while any manifest cannot be read.
  Status Remove(std::string_view id);
  // Keeps the newest, the last `keep_last` complete ones and the best `keep_best` by `value_of`;
  // removes the others and returns their ids. Damaged ones stay. Those whose files are on another
  // machine are taken for complete.
  Result<std::vector<std::string>> ApplyKeep(const CheckpointSpec& spec, const ValueOf& value_of);

  // Removes parts that no checkpoint names and that `needed` does not ask for: parts of saves that
  // were removed before they could be committed. Only for the attempt that stores them. kConflict:
  // a later one has taken over.
  Status DropUnnamedParts(uint32_t attempt,
                          const std::function<bool(const std::string& sha256)>& needed);

  const BlobStore& parts() const { return parts_; }
  const std::string& shared_dir() const { return shared_dir_; }

 private:
  struct Fenced {
    uint32_t attempt = 0;
    CheckpointId last;  // ids up to this one were used, even if removed since
  };
  CheckpointStore(std::string dir, BlobStore parts, std::string shared_dir)
      : dir_(std::move(dir)), parts_(std::move(parts)), shared_dir_(std::move(shared_dir)) {}

  std::string PathOf(const CheckpointId& id) const;
  Result<UniqueFd> Lock() const;                  // until closed
  Result<std::vector<CheckpointId>> Ids() const;  // newest first
  static Result<Fenced> ReadFence(const std::string& dir);
  Status WriteFence(const Fenced& fenced) const;
  Status RemoveLocked(const std::vector<CheckpointId>& ids);
  void RemoveUnnamedParts(const std::function<bool(const std::string& sha256)>& candidate) const;

  std::string dir_;
  BlobStore parts_;
  std::string shared_dir_;
};

}  // namespace athanor
