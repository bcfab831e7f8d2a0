#include <cstdint>
#include <string_view>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "run/environment/requirements.h"

// The first half of the input is requirements.txt, the second a file it may name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const athanor::TestDir dir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto half = text.find('\0');
  (void)athanor::ReplaceFile(dir / "requirements.txt", text.substr(0, half)).ok();
  (void)athanor::ReplaceFile(dir / "a", half < size ? text.substr(half + 1) : "").ok();
  const auto fd = athanor::OpenDir(dir.path());
  if (!fd) return 0;
  (void)athanor::ReadRequirements(fd->get(), "requirements.txt").has_value();
  (void)athanor::ReadCondaFile(fd->get(), "requirements.txt").has_value();
  return 0;
}
