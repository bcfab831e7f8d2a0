// Any bytes as the manifest of a checkpoint: refused, or a value that can be
// restored beneath a folder and reads back the same from what it is written as.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "record/checkpoints/checkpoint_manifest.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  // Corrects the checksum, so that what follows it is reached.
  if (data[0] % 4 != 0) text = "athanor-checkpoint 1 " + Sha256Hex(text) + "\n" + text;
  (void)CheckpointId::Parse(text);
  const auto manifest = ParseManifest(text);
  if (!manifest) return 0;
  for (const auto& file : manifest->files) {
    Check(CheckRelativeName(file.name).ok());
    uint64_t bytes = 0;
    for (size_t i = 0; i < file.parts.size(); ++i) {
      bytes += PartSize(file.size, manifest->part_bytes, i);
    }
    Check(bytes == file.size);
  }
  auto again = ParseManifest(FormatManifest(*manifest));
  Check(again.has_value());
  again->info.at = manifest->info.at;  // a day such as February 31 becomes another
  Check(*again == *manifest);
  return 0;
}
