// For any bytes, nothing may appear outside the target folder.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace {

// Nearly every mutation breaks the checksum of a header, and the rest is then never reached:
// correct it.
void MendChecksums(std::string& bytes) {
  for (size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    bytes.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[at + i]);
    std::snprintf(bytes.data() + at + 148, 8, "%06o", sum & 0777777);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  static const TestDir dir;
  static const UniqueFd input(memfd_create("fuzz", MFD_CLOEXEC));
  const std::string inside = dir / "inside";
  if (!MakeDirs(inside).ok()) std::abort();
  if (ftruncate(input.get(), 0) != 0) std::abort();
  lseek(input.get(), 0, SEEK_SET);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  MendChecksums(bytes);
  if (!WriteAll(input.get(), bytes).ok()) std::abort();

  ExtractLimits limits;
  limits.max_entries = 50;
  limits.max_bytes = 1 << 20;
  limits.ratio_from = 1 << 16;
  lseek(input.get(), 0, SEEK_SET);
  const auto listed = ListTar(input.get(), limits);
  lseek(input.get(), 0, SEEK_SET);
  const auto root = OpenDir(inside);
  if (!root) std::abort();
  const auto extracted = ExtractTar(input.get(), root->get(), limits);
  if (extracted.ok() && !listed) std::abort();
  if (ListDir(dir.path()) != std::vector<std::string>{"inside"}) std::abort();
  if (!RemoveTree(inside).ok()) std::abort();
  return 0;
}
