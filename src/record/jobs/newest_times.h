// NewestTimes knows, for each text by which jobs are looked up, when the newest job with that text
// was created. The store keeps jobs in the order of creation, so it needs no index by such texts;
// inserting into one at random positions would cost every submit an extra page. It is a hint, not
// the truth: it keeps only hashes, and a job that was added may have been removed since. The caller
// looks the job up at that time, and searches the whole store if it is not there.
//
// It never misses: no time for a text means that nothing with that text was ever added. 12 bytes
// per text, times at most 3 for the free space of the table.
//
// Threads: safe from any.
#pragma once

#include "base/exec/mutex.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace athanor {

class NewestTimes {
 public:
  enum class Of : uint8_t { kName, kKey, kRun };

  // `created`: milliseconds, 0 to 2^48. The one added last is the newest, even if a clock that was
  // set back gives it an earlier time.
  void Add(Of kind, std::string_view text, int64_t created);
  std::optional<int64_t> Find(Of kind, std::string_view text) const;

 private:
  // 48 bits of hash, which are never all 0, and 48 of time.
  using Slot = std::array<uint16_t, 6>;

  static size_t At(const std::vector<Slot>& slots, uint64_t hash);
  void Grow() REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<Slot> slots_ GUARDED_BY(mutex_);  // a power of two, probed in line
  size_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace athanor
