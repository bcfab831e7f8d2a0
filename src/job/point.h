// A point of a metric, and where it comes from. A point is identified by (job, attempt, host, rank,
// channel, seq): seq increases within a channel, and a point whose seq is not above the last one
// stored is a duplicate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace athanor {

struct Point {
  std::string name;
  std::optional<int64_t> step;
  int64_t wall_ns = 0;
  double value = 0;  // NaN and infinities are kept exactly
};

struct PointBatch {
  uint32_t attempt = 1;  // number
  uint32_t rank = 0;     // over all hosts; of what a whole host reports, its first
  uint32_t channel = 0;
  struct Item {
    uint64_t seq = 0;
    Point point;
  };
  std::vector<Item> items;
  uint32_t host = 0;  // of the attempt
};

// Who gives numbers to channels. Each sender counts for itself, so no two may use the same numbers.
//
//   0x0000'0000..  a spool that athanor.log writes: the serial of its segments
//   0x2000'0000..  MLflow's calls that an agent kept: the random number of its spool
//   0x4000'0000..  an event file: its number on that host
//   0x8000'0000..  a regex of the job file: the stream it was found in
//   0xC000'0000..  guessed from a stream that the script printed
//   kMlflowChannel MLflow's calls from outside of jobs
inline constexpr uint32_t kEventChannel = 0x4000'0000u;
inline constexpr uint32_t kRegexChannel = 0x8000'0000u;
inline constexpr uint32_t kMlflowChannel = 0x6D6C'666Cu;
inline constexpr uint32_t ChannelOfKeptCalls(uint32_t number) {
  return 0x2000'0000u | (number & 0x0FFF'FFFFu);
}
inline constexpr bool IsOfKeptCalls(uint32_t channel) {
  return channel == ChannelOfKeptCalls(channel);
}

// Guessed points count only as long as no other channel has a point of the same name, in any
// attempt; after that they are dropped. Event files' may be minutes late, because writers buffer
// them.
inline constexpr uint32_t kGuessChannel = 0xC000'0000u;
inline constexpr bool IsGuessed(uint32_t channel) {
  return channel >= kGuessChannel && channel - kGuessChannel < 8;
}

}  // namespace athanor
