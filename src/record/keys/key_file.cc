#include "record/keys/key_file.h"

#include "base/ids.h"
#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kLongest = 4096;
constexpr size_t kKeyBytes = 32;

std::string TextOf(std::string_view key) { return fmt::format("{}\n{:08x}\n", key, Crc32c(key)); }

bool HasSum(std::string_view text) {
  return text.find('\n') != std::string_view::npos && text.find('\n') + 1 < text.size();
}

// Before there were sums: digits and the end of a line, nothing else.
bool IsOldKey(std::string_view text) {
  const auto key = Trim(text);
  if (key.size() != 2 * kKeyBytes) return false;
  for (const char c : key) {
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return false;
  }
  return true;
}

}  // namespace

Result<std::string> ReadKeyFile(const std::string& path) {
  ATHANOR_TRY(const std::string text, ReadFile(path, kLongest));
  const std::string key = text.substr(0, text.find('\n'));
  if (HasSum(text) ? text == TextOf(key) : IsOldKey(text)) return std::string(Trim(key));
  return Fail(
      ErrorCode::kCorrupt, path + " is damaged",
      fmt::format("put back the one of a backup (server/{0}), or have a new one made, after "
                  "which jobs that run now are not heard any more: mv {1} {1}.damaged",
                  BaseName(path), ShellQuote(path)));
}

Result<std::string> OpenKeyFile(const std::string& path) {
  auto key = ReadKeyFile(path);
  if (!key && key.error().code == ErrorCode::kNotFound) key = RandomHex(kKeyBytes);
  if (!key) return key;
  const auto text = ReadFile(path, kLongest);
  if (!text || !HasSum(*text)) ATHANOR_CHECK_OK(WriteFileAtomic(path, TextOf(*key), 0600));
  return key;
}

}  // namespace athanor
