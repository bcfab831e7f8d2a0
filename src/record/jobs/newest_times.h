// NewestTimes knows, for each text that jobs are looked up by, when the newest job with that text
// was created: the store keeps jobs in that order, so it needs no index by such texts, whose
// random places would cost every submit a page of its own. A hint, not a truth: it keeps hashes
// only, and what was added may have been forgotten since. Who asks looks the job up at that time,
// and searches the whole store if it is not there.
//
// It never misses: no time for a text means that nothing with that text was ever added. 12 bytes
// a text, times at most 3 for the room a table wants.
//
// Threads: safe from any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace athanor {

class NewestTimes {
 public:
  enum class Of : uint8_t { kName, kKey, kRun };

  // `created`: milliseconds, 0 to 2^48. Whoever is added last is the newest, also when a clock that
  // was set back gives it an earlier time.
  void Add(Of kind, std::string_view text, int64_t created);
  std::optional<int64_t> Find(Of kind, std::string_view text) const;

 private:
  // 48 bits of hash, which are never all 0, and 48 of time.
  using Slot = std::array<uint16_t, 6>;

  static size_t At(const std::vector<Slot>& slots, uint64_t hash);
  void Grow();

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;  // a power of two, probed in line; under mutex_
  size_t used_ = 0;          // under mutex_
};

}  // namespace athanor
