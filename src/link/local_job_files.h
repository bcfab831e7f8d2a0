// JobFiles of an agent that has the server's folders in front of it, and what the server itself
// works with for agents that do not. It takes every rule of record's stores as it is: blobs are
// files that are opened in place, checkpoints are CheckpointStore's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/exec/mutex.h"
#include "link/job_files.h"

namespace athanor {

class LocalJobFiles final : public JobFiles {
 public:
  struct Options {
    std::string blob_dir;
    std::string job_dir;
    std::string earlier_dir;  // job_dir of the job that this one continues from; empty: none
    std::string shared_dir;   // where checkpoints are that stay in place; empty: none do
    uint32_t attempt = 1;     // its number
  };
  static Result<std::unique_ptr<LocalJobFiles>> Open(Options options);

  std::unique_ptr<JobFiles> Until(int cancel_fd, Millis patience) const override;
  Result<std::vector<bool>> Has(Shelf shelf, const std::vector<BlobRef>& blobs) override;
  Result<UniqueFd> Get(Shelf shelf, const std::string& sha256) override;
  Result<BlobRef> Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                      const Pace& pace) override;
  Result<std::vector<JobEntry>> List(const std::string& folder) override;
  Result<UniqueFd> Read(const std::string& name) override;
  Status Replace(const std::string& name, int fd) override;
  Result<uint64_t> Append(const std::string& name, uint64_t offset,
                          std::string_view bytes) override;
  Status Remove(const std::string& name) override;
  Result<CheckpointInfo> Commit(const CheckpointManifest& manifest) override;
  Status Tend(const CheckpointCare& care) override;

  // kDenied: `shelf` is read only, or there is no earlier job.
  Result<BlobStore> StoreOf(Shelf shelf, bool to_write) const;
  Result<CheckpointStore> Checkpoints() const;

 private:
  explicit LocalJobFiles(Options options, BlobStore blobs)
      : options_(std::move(options)), blobs_(std::move(blobs)) {}

  const Options options_;
  const BlobStore blobs_;
  mutable Mutex mutex_;
  mutable std::optional<BlobStore> parts_ GUARDED_BY(mutex_);  // once it was needed
};

// Whether an entry of that name may be read or written; kDenied says why not.
Status CheckEntryName(const std::string& name, bool to_write);

}  // namespace athanor
