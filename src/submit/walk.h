// The first pass over a source folder: which files, links and empty folders no rule
// leaves out, and how large they are. No content is read.
//
// Most of its time is spent in the kernel, one call per file; a second thread takes some of them
// once there are many.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "job/manifest.h"
#include "submit/bundle.h"
#include "submit/hash_cache.h"

namespace athanor {

struct Found {
  BundleEntry entry;  // without its hash
  FileStamp stamp;    // of a file
};

// By path. Adds the rules of the folders it reads to tree.rules and what was left out without a
// rule to tree.notes; tree.dir is `root`'s path.
Result<std::vector<Found>> WalkSource(int root, const ScanOptions& options, SourceTree& tree);

// The error of one entry that cannot be read, with what to do. `rule` leaves it out.
Error Unreadable(Error error, const std::string& rule);

}  // namespace athanor
