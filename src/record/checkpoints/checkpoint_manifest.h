// CheckpointManifest lists the files of a checkpoint and the names of their bytes. Its file is the
// commit point: if the manifest can be read, the checkpoint was completed by the script; whether
// the parts are still there is up to the store. Pure: text to value and back.
//
// The file: a line "athanor-checkpoint 1 <sha256 of the rest>", then one JSON object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/record.h"

namespace athanor {

// Files are stored in parts of this size, each under the sha256 of its bytes. So unchanged parts
// are not stored twice, and an interrupted sync can continue.
inline constexpr uint64_t kPartBytes = uint64_t{64} << 20;

struct CheckpointFile {
  std::string name;  // beneath the checkpoint directory; passes CheckRelativeName
  uint64_t size = 0;
  uint32_t mode = 0;  // permission bits
  int64_t mtime_ns = 0;
  std::string link;  // a symbolic link to this, which stays beneath; then size is 0, no parts
  std::vector<std::string> parts;  // sha256 of each, in order; an empty file has none

  bool is_link() const { return !link.empty(); }
  bool operator==(const CheckpointFile&) const = default;
};

struct CheckpointManifest {
  CheckpointInfo info;
  bool shared = false;  // the files stay where they are: parts are checksums, not blobs
  uint64_t part_bytes = kPartBytes;
  std::vector<CheckpointFile> files;  // by name, each once; folders only by what is in them

  bool operator==(const CheckpointManifest&) const = default;
};

// Bytes in part `index` of a file of `size`.
uint64_t PartSize(uint64_t size, uint64_t part_bytes, size_t index);
uint64_t PartCount(uint64_t size, uint64_t part_bytes);
// The first of two names that cannot be in one folder: the same name twice, or a file that another
// one needs as a folder. kInvalid also: unusable names, links that lead outside, parts that do not
// add up to the size.
Status CheckManifest(const CheckpointManifest& manifest);

std::string FormatManifest(const CheckpointManifest& manifest);
// kCorrupt: the checksum or anything else is not as FormatManifest writes it;
// kInvalid: made by a newer version.
Result<CheckpointManifest> ParseManifest(std::string_view text);

// "<attempt>-<sequence>", both from 1, without leading zeros; ordered as numbers.
struct CheckpointId {
  uint32_t attempt = 0;
  uint32_t sequence = 0;
  auto operator<=>(const CheckpointId&) const = default;
  std::string ToString() const;
  static Result<CheckpointId> Parse(std::string_view text);  // kInvalid
};

}  // namespace athanor
