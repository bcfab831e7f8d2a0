// Reads one file of a checkpoint in parts, names each by its sha256 and stores it. Stored parts
// stay stored: an interrupted file continues at the next part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/objects/blob_store.h"
#include "run/checkpoint/folder_scan.h"
#include "run/checkpoint/yielder.h"

namespace athanor {

struct KeptFile {
  FileStamp stamp;
  std::vector<std::string> parts;  // so far
  bool complete = false;
};

// Continues with `kept` until it is complete. `store` null: the parts are only named (shared
// checkpoints). `yielder` null: at full speed. kConflict: the file is not, or not any more, the one
// of `kept.stamp`; kCancelled: the yielder said so. Then `kept` has what was done, or nothing if
// the file changed.
Status KeepFile(int dir_fd, const std::string& name, uint64_t part_bytes, const BlobStore* store,
                Yielder* yielder, KeptFile& kept);

}  // namespace athanor
