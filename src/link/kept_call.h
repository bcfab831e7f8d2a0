// A call of MLflow's that an agent keeps and delivers carries its place: the server takes what a
// place names once, however often it is delivered. It travels as a header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

inline constexpr char kPlaceHeader[] = "X-Athanor-Place";

struct KeptPlace {
  uint32_t channel = 0;  // of the agent's spool
  uint64_t seq = 0;      // rises within the channel
  bool operator==(const KeptPlace&) const = default;
};

std::string FormatPlace(KeptPlace place);                    // "1f00ba12:7"
std::optional<KeptPlace> ParsePlace(std::string_view text);  // none: it is not one

// The channel of a spool whose random number is `number`; away from those of the script's own
// spool (small), of regular expressions and of event files (the two highest bits).
inline uint32_t ChannelOfSpool(uint32_t number) {
  return 0x2000'0000u | (number & 0x0FFF'FFFFu);
}
// The sequence number of the `index`-th point of a kept call, which has at most 1,000.
inline uint64_t SeqOfPoint(KeptPlace place, size_t index) { return (place.seq << 10) + index + 1; }

}  // namespace athanor
