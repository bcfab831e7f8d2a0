// A job's source on disk: unpacked from its bundle, each file checked against its hash; cached by
// bundle if an overlay can protect the cache.
#pragma once

#include <string>

#include "base/result.h"
#include "record/objects/blob_store.h"
#include "run/environment/environment_cache.h"

namespace athanor {

// Unpacks `bundle` into `dir`, which exists and is empty.
Status LayOutBundle(const BlobStore& blobs, const std::string& bundle, const std::string& dir);

// The folder of `bundle` in the cache, complete before it appears. Several agents may ask at once.
Result<std::string> CachedSource(const BlobStore& blobs, const std::string& bundle,
                                 const std::string& cache_dir);

// Removes those that no job was given since then; as SweepEnvironments.
Result<CacheSwept> SweepSources(const std::string& cache_dir, WallTime unused_since, bool dry_run);

// Whether this process can mount an overlay whose folders are in `cache_dir`. Tried once per boot;
// the answer is stored there.
bool OverlayWorks(const std::string& cache_dir);

}  // namespace athanor
