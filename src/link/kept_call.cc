#include "link/kept_call.h"

#include <charconv>

#include "base/format.h"

namespace athanor {

std::string FormatPlace(KeptPlace place) {
  return fmt::format("{:x}:{}", place.channel, place.seq);
}

std::optional<KeptPlace> ParsePlace(std::string_view text) {
  KeptPlace place;
  const char* end = text.data() + text.size();
  const auto channel = std::from_chars(text.data(), end, place.channel, 16);
  if (channel.ec != std::errc() || channel.ptr == end || *channel.ptr != ':') return std::nullopt;
  const auto seq = std::from_chars(channel.ptr + 1, end, place.seq);
  // Room for the points of a call (SeqOfPoint).
  if (seq.ec != std::errc() || seq.ptr != end || place.seq >> 53 != 0) return std::nullopt;
  if (place.channel != ChannelOfSpool(place.channel)) return std::nullopt;
  return place;
}

}  // namespace athanor
