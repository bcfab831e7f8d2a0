// Removes blobs that no job refers to any more: mark and sweep, while the server runs. A blob that
// may be named soon is recognised by its time: it is kept if it was written, or found by a caller
// that is about to name it (BlobStore::Use), since `unused_since`.
//
// Threads: any. One sweep or backup at a time (kConflict).
#pragma once

#include <cstdint>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "job/record.h"
#include "record/jobs/job_store.h"
#include "record/layout.h"
#include "record/objects/blob_store.h"

namespace athanor {

struct SweepOptions {
  // Less than an hour ago is not safe; nor is later than the creation of the oldest live job, whose
  // agent may hold outputs that the server does not know yet.
  WallTime unused_since;
  bool dry_run = false;  // only counts
};

struct Swept {
  uint64_t removed = 0;
  uint64_t bytes = 0;  // of the removed
  uint64_t kept = 0;   // in use, or used since
};

// `live` are the records in memory, taken on the control thread before this is called: they may be
// newer than the store. kCorrupt: a record or the manifest of a source cannot be read, so what it
// needs is unknown; nothing was removed.
Result<Swept> SweepBlobs(const StoreLayout& layout, const BlobStore& blobs, const JobStore& jobs,
                         const std::vector<JobRecord>& live, const SweepOptions& options);

}  // namespace athanor
