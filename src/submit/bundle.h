// The source folder of a job as a list of its content: what is packaged, how large it is, and what
// was left out and why. Nothing is copied here: the caller asks the server which blobs are missing
// and sends those. The sha256 of the manifest's text is the name of the bundle.
//
// The walk follows no links and opens everything beneath the folder. Links that stay
// inside are kept as links; others, and devices, pipes and sockets, are left out with
// a note. Two passes: sizes first, so that a folder that is too large is refused
// before a byte of it is read; then hashes, from the cache where a file has not changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/result.h"
#include "base/text/ignore.h"
#include "job/manifest.h"

namespace athanor {

struct ScanOptions {
  std::vector<std::string> ignore;  // patterns on top of the folder's own
  uint64_t max_size = 0;            // of all files, and of each; 0: 200 and 50 MiB a file
  size_t max_files = kBundleEntryLimit;
  // Remembers hashes by path, size, times and inode; empty: none. One file per folder.
  std::string cache_file;
  // Files that changed less than 2 s before are not remembered, because a second change may not
  // show in the times. The zero time remembers nothing.
  WallTime now;
};

struct SourceTree {
  std::string dir;  // absolute, links resolved
  BundleManifest manifest;
  std::vector<std::string> notes;  // for a person: what was left out although no rule says so
  IgnoreRules rules;               // to explain why a file is missing
  size_t files_read = 0;           // the rest came from the cache
};

// kNotFound, kDenied: the folder. kInvalid (ATH-S0121, S0122): too large, with the five
// largest parts and what to write in .athanorignore. kConflict: a file kept changing.
Result<SourceTree> ScanSource(const std::string& dir, const ScanOptions& options);

// A file of the tree, to send. The receiver checks its hash.
Result<UniqueFd> OpenSourceFile(const SourceTree& tree, const BundleEntry& entry);

}  // namespace athanor
