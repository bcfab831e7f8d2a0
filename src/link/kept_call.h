// An MLflow call that an agent keeps and delivers has a position. The server accepts each position
// once, however often it is delivered. Consecutive calls may be joined into one, whose position
// tells them apart: joined or not, each of their points has the same number. It is sent as a
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

inline constexpr char kPlaceHeader[] = "X-Athanor-Place";
inline constexpr size_t kMostKeptPoints = 1'000;  // of a call, joined or not

struct KeptPlace {
  uint32_t channel = 0;  // of the agent's spool
  uint64_t seq = 0;      // rises within the channel
  // For joined calls, which have the numbers from `seq` on: the number of points up to the end of
  // each call. Empty: one call.
  std::vector<uint32_t> ends;
  bool operator==(const KeptPlace&) const = default;
};

// "1f00ba12:7"; joined calls follow with the points of each: "1f00ba12:7:1,1,20".
std::string FormatPlace(const KeptPlace& place);
std::optional<KeptPlace> ParsePlace(std::string_view text);  // none: it is not a position

// The sequence number of the `index`-th point.
uint64_t SeqOfPoint(const KeptPlace& place, size_t index);

}  // namespace athanor
