// Many points on their way to a store: frames of series_file.h in which the sender numbers the
// names in order of appearance. They are self-contained: sending them twice or in part is harmless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "record/series/series_file.h"

namespace athanor {

inline constexpr uint32_t kMaxSentNames = 100'000;

// Makes the frames of the points of one channel.
class FrameMaker {
 public:
  explicit FrameMaker(uint32_t channel) { block_.channel = channel; }

  // `seq` is strictly increasing; the name has 1 to kMaxSeriesName bytes.
  void Add(uint64_t seq, std::string_view name, std::optional<int64_t> step, int64_t wall_ns,
           double value);
  uint64_t points() const { return points_; }
  std::string Take();  // everything that was added; nothing may be added after it

 private:
  uint32_t NumberOf(std::string_view name);
  void EndBlock();

  std::string frames_;
  SeriesBlock block_;
  std::vector<std::string> names_;                     // by number
  std::unordered_map<std::string, uint32_t> numbers_;  // by name
  uint32_t last_ = 0;
  uint64_t points_ = 0;
};

struct SentPoints {
  std::vector<std::string> names;   // by the sender's number; empty: it has none
  std::vector<SeriesBlock> blocks;  // every number in them has a name
};
// kInvalid: they are not complete frames of names and points.
Result<SentPoints> ReadSentPoints(std::string_view frames);

}  // namespace athanor
