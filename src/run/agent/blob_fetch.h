// BlobFetch opens the blobs of a manifest in its order, where each of them has to come from a
// server elsewhere: it fetches several at once, some ahead of the one that is asked for, and what
// this machine has already does not travel.
//
// Threads: Open belongs to one; it has others of its own. The destructor waits for calls that are
// under way.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/exec/mutex.h"
#include "job/manifest.h"
#include "link/job_files.h"
#include "run/agent/blob_cache.h"

namespace athanor {

class BlobFetch {
 public:
  BlobFetch(JobFiles& files, const BlobCache& cache, const BundleManifest& manifest);
  ~BlobFetch();

  Result<UniqueFd> Open(const std::string& sha256);
  // Whether something had to travel.
  bool fetched() const { return !wanted_.empty(); }

 private:
  void Fetch();

  JobFiles& files_;
  const BlobCache& cache_;
  std::vector<std::string> wanted_;        // each once, in the manifest's order
  std::map<std::string, size_t> numbers_;  // in wanted_

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::optional<Result<UniqueFd>>> come_ GUARDED_BY(mutex_);  // by number
  size_t next_ GUARDED_BY(mutex_) = 0;                                    // to be fetched
  size_t asked_ GUARDED_BY(mutex_) = 0;                                   // the farthest
  bool over_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace athanor
