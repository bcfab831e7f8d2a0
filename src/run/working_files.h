// Keeps what a script left in its working folder: the files that are not in the job's source, or
// differ from it. Each becomes a blob, and a listing (job/manifest.h) names them. Caches, .git
// and virtual environments are no results and are passed over; what else is not kept is told, with
// its size. The ignore rules of the source say what is no source, not what is no result: they do
// not count here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "job/spec.h"
#include "record/objects/blob_store.h"

namespace athanor {

struct WorkingFolder {
  HeldFolder dir;      // the source as it was laid out, or the upper layer of an overlay
  std::string source;  // the source's listing; empty: there is none
  std::string kept;    // the listing of what earlier attempts kept; empty: nothing
  std::vector<std::string> skip;  // folders below that are kept elsewhere: checkpoints
};

// More files than this are not kept: each costs a sync of the disk.
inline constexpr size_t kWorkingFilesLimit = 10'000;

// Nothing: the script left nothing. A file replaces one of the same name of an earlier attempt; the
// others of that attempt stay. Where not all fit, files near the top of the folder come first, of
// these the smaller ones. Links are kept as links, unless they lead out of the folder. Files that
// cannot be read are told as left out. kExhausted: the store has no room.
Result<std::optional<Output>> KeepWorkingFiles(const WorkingFolder& folder, const OutputSpec& spec,
                                               const BlobStore& blobs);

}  // namespace athanor
