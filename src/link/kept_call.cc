#include "link/kept_call.h"

#include <algorithm>
#include <charconv>

#include "base/text/format.h"
#include "job/point.h"

namespace athanor {
namespace {

constexpr int kPointBits = 10;
static_assert(kMostKeptPoints < 1 << kPointBits);

// The counts of joined calls; false: they are not.
bool ReadEnds(const char* at, const char* end, std::vector<uint32_t>& ends) {
  uint32_t sum = 0;
  for (;;) {
    uint32_t count = 0;
    const auto read = std::from_chars(at, end, count);
    if (read.ec != std::errc() || count == 0 || count > kMostKeptPoints - sum) return false;
    ends.push_back(sum += count);
    if (read.ptr == end) return true;
    if (*read.ptr != ',') return false;
    at = read.ptr + 1;
  }
}

}  // namespace

std::string FormatPlace(const KeptPlace& place) {
  std::string text = fmt::format("{:x}:{}", place.channel, place.seq);
  uint32_t sum = 0;
  for (const uint32_t end : place.ends) {
    text += fmt::format("{}{}", sum == 0 ? ':' : ',', end - sum);
    sum = end;
  }
  return text;
}

std::optional<KeptPlace> ParsePlace(std::string_view text) {
  KeptPlace place;
  const char* end = text.data() + text.size();
  const auto channel = std::from_chars(text.data(), end, place.channel, 16);
  if (channel.ec != std::errc() || channel.ptr == end || *channel.ptr != ':') return std::nullopt;
  const auto seq = std::from_chars(channel.ptr + 1, end, place.seq);
  // Room for the points of a call, and for joined calls.
  if (seq.ec != std::errc() || place.seq >> 53 != 0) return std::nullopt;
  if (!IsOfKeptCalls(place.channel)) return std::nullopt;
  if (seq.ptr == end) return place;
  if (*seq.ptr != ':' || !ReadEnds(seq.ptr + 1, end, place.ends)) return std::nullopt;
  return place;
}

uint64_t SeqOfPoint(const KeptPlace& place, size_t index) {
  uint64_t call = 0;
  if (!place.ends.empty()) {
    // Points beyond the last end belong to the last call.
    const auto at = std::upper_bound(place.ends.begin(), place.ends.end() - 1, index);
    call = static_cast<uint64_t>(at - place.ends.begin());
    if (call > 0) index -= place.ends[call - 1];
  }
  return ((place.seq + call) << kPointBits) + index + 1;
}

}  // namespace athanor
