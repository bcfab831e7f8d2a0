// Removes blobs that no job refers to any more: mark and sweep, while the server works.
// What may be named soon is told by its time: a blob that was written, or found to be there
// by someone who is about to name it (BlobStore::Use), since `unused_since` is kept.
//
// Threads: any. One sweep or backup at a time (kConflict).
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "job/record.h"
#include "record/jobs/job_store.h"
#include "record/layout.h"
#include "record/objects/blob_store.h"

namespace athanor {

struct SweepOptions {
  // At most an hour ago is not safe; nor is later than the birth of the oldest live job,
  // whose agent may hold outputs that the server has not heard of.
  WallTime unused_since;
  bool dry_run = false;  // only counts
};

struct Swept {
  uint64_t removed = 0;
  uint64_t bytes = 0;  // of the removed
  uint64_t kept = 0;   // in use, or used since
};

// `live` are the records in memory, taken on the control thread before this is called:
// they may be ahead of the store. kCorrupt: a record or a source's listing cannot be read,
// so that what it needs is not known; nothing was removed.
Result<Swept> SweepBlobs(const StoreLayout& layout, const BlobStore& blobs, const JobStore& jobs,
                         const std::vector<JobRecord>& live, const SweepOptions& options);

}  // namespace athanor
