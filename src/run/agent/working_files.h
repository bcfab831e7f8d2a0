// Stores what a script left in its working folder: the files that are not in the job's source, or
// differ from it. Each becomes a blob, and a manifest (job/manifest.h) names them. Caches, .git and
// virtual environments are not results and are skipped; other files that are not stored are
// reported, with their size. The ignore rules of the source say what is not source, not what is not
// a result, so they do not apply here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/io/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "job/spec.h"
#include "link/job_files.h"

namespace athanor {

struct WorkingFolder {
  HeldFolder dir;                 // the unpacked source, or the upper layer of an overlay
  std::string source;             // the source's manifest; empty: there is none
  std::string kept;               // the manifest of what earlier attempts left; empty: nothing
  std::vector<std::string> skip;  // folders below that are stored elsewhere: checkpoints
};

// More files than this are not stored: each costs a sync of the disk.
inline constexpr size_t kWorkingFilesLimit = 10'000;

// None: the script left nothing. A file replaces one of the same name of an earlier attempt; the
// others of that attempt stay. If not all fit, files near the top of the folder come first, and of
// these the smaller ones. Links are stored as links, unless they lead out of the folder. Files that
// cannot be read, or change while they are stored, are reported as left out. kExhausted: the store
// has no room.
Result<std::optional<Output>> KeepWorkingFiles(const WorkingFolder& folder, const OutputSpec& spec,
                                               JobFiles& files);

}  // namespace athanor
