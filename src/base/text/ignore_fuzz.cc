// The bytes up to the first NUL are an ignore file, the rest a path.
#include <cstdint>
#include <string_view>

#include "base/text/ignore.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  const std::string_view path = end == all.npos ? "dir/name.py" : all.substr(end + 1);
  athanor::IgnoreRules rules("some/where");
  rules.AddDefaults();
  rules.Add(athanor::IgnoreRules::Layer::kGit, "some", all.substr(0, end), ".gitignore");
  (void)rules.OnPath(path, (size & 1) != 0);
  return 0;
}
