// Reads one file of a checkpoint in parts, names each by its sha256 and stores it (Shelf::kParts).
// Stored parts stay stored: an interrupted file continues at the next part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "link/job_files.h"
#include "run/checkpoint/folder_scan.h"
#include "run/checkpoint/yielder.h"

namespace athanor {

struct KeptFile {
  FileStamp stamp;
  std::vector<std::string> parts;  // so far
  bool complete = false;
  bool changed = false;  // it is not, or not any more, the one of `stamp`
};

// Where parts go, and how.
struct PartSink {
  JobFiles* files = nullptr;   // null: the parts are only named (shared checkpoints)
  Yielder* yielder = nullptr;  // null: at full speed
  size_t at_once = 1;          // parts that are read and sent at the same time
};

// Continues with `kept` until it is complete. kConflict: the file has changed (`kept.changed`), or
// else what JobFiles::Put says; kCancelled: the yielder said so, or whoever stops `files`. Then
// `kept` has what was done, or nothing if the file changed.
Status KeepFile(int dir_fd, const std::string& name, uint64_t part_bytes, const PartSink& sink,
                KeptFile& kept);

}  // namespace athanor
