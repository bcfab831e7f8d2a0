// How many runs use each key, per experiment, and when something last happened there: what an
// overview shows about a million runs without reading them. Deleted runs do not count.
//
// Threads: its owner guards it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "track/run_entry.h"

namespace athanor {

enum class KeyKind : uint8_t { kMetric, kParam, kTag };

class RunCounts {
 public:
  struct Sum {
    int64_t runs = 0;
    int64_t last_ms = 0;  // a begin or an end, also of runs that are gone
  };

  // A run with all its keys: it was added or restored; it was removed or marked as deleted.
  void Add(const RunEntry& run);
  void Take(const RunEntry& run);
  // A run that counts got a key, or lost it.
  void AddKey(const RunEntry& run, KeyKind kind, uint32_t key);
  void TakeKey(const RunEntry& run, KeyKind kind, uint32_t key);
  void AddMetrics(const RunEntry& run);
  void TakeMetrics(const RunEntry& run);
  void Happened(const RunEntry& run);  // it began or ended
  void Clear() { experiments_.clear(); }

  Sum Of(int64_t experiment) const;
  // By key number; of one experiment, or of all.
  std::vector<uint32_t> Keys(KeyKind kind, std::optional<int64_t> experiment) const;

 private:
  struct One {
    Sum sum;
    std::array<std::vector<uint32_t>, 3> keys;  // by KeyKind
  };
  std::map<int64_t, One> experiments_;
};

}  // namespace athanor
