// A job's source on disk: unpacked from its bundle, each file checked against its hash; cached by
// bundle if an overlay can protect the cache.
#pragma once

#include <string>

#include "base/result.h"
#include "link/job_files.h"
#include "run/environment/environment_cache.h"

namespace athanor {

// Where sources come from.
struct SourceFrom {
  JobFiles& files;
  std::string cache_dir;
  // The server is on this machine: its blobs are opened in place. Otherwise they are fetched,
  // several at once, but for those that this machine has from another source (blob_cache.h).
  bool is_here = true;
};

// Unpacks `bundle` into `dir`, which exists and is empty.
Status LayOutBundle(const SourceFrom& from, const std::string& bundle, const std::string& dir);

// The folder of `bundle` in the cache, complete before it appears. Several agents may ask at once.
Result<std::string> CachedSource(const SourceFrom& from, const std::string& bundle);

// Removes those that no job was given since then, as SweepEnvironments, and fetched blobs that none
// needed since. Only sources are counted, but the bytes are those of both.
Result<CacheSwept> SweepSources(const std::string& cache_dir, WallTime unused_since, bool dry_run);

// Whether this process can mount an overlay whose folders are in `cache_dir`. Tried once per boot;
// the answer is stored there.
bool OverlayWorks(const std::string& cache_dir);

}  // namespace athanor
