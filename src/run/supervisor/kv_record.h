// The byte format of every file that agent and supervisor exchange: a kind, a version, then keys
// and values, each ended by NUL, then "end" and the number of pairs, so that a torn file is never
// taken for a complete one. Read one with
//   tr '\0' '\n' < exit
// The supervisor is a small static program: this needs only base/result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

struct KvEntry {
  std::string_view key;
  std::string_view value;
};

class KvWriter {
 public:
  KvWriter(std::string_view kind, int version);
  void Text(std::string_view key, std::string_view value);
  void Number(std::string_view key, int64_t value);
  void Flag(std::string_view key, bool value) { Number(key, value ? 1 : 0); }
  // The bytes of the file. kInvalid: a value contained a NUL; `what` names its key.
  Result<std::string> Finish() &&;

 private:
  std::string bytes_;
  std::string bad_key_;
  int64_t count_ = 0;
};

// The pairs in order, as views into `bytes`. kCorrupt: not this kind and
// version, torn, bytes after the end, a key that is not [a-z0-9_.]{1,64}, or
// longer than kKvLimit.
Result<std::vector<KvEntry>> ParseKv(std::string_view kind, int version, std::string_view bytes);
inline constexpr size_t kKvLimit = 16u << 20;

// Strict decimal, an optional '-', nothing else. kCorrupt otherwise.
Result<int64_t> KvNumber(const KvEntry& entry);
// The same within [low, high].
Result<int64_t> KvNumberIn(const KvEntry& entry, int64_t low, int64_t high);
Result<bool> KvFlag(const KvEntry& entry);
tl::unexpected<Error> KvFail(const KvEntry& entry, std::string_view why);

}  // namespace athanor
