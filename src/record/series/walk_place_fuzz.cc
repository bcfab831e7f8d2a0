// Any text as the place of a walk, as it comes in a page token: what is taken is written the same
// way again, and a walk from it ends.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "record/series/series_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const auto place = WalkPlace::Parse({reinterpret_cast<const char*>(data), size});
  if (!place) return 0;
  if (WalkPlace::Parse(place->ToString()) != place) std::abort();
  SeriesPyramid pyramid;
  for (int64_t i = 0; i < 1500; ++i) {
    pyramid.Add({i % 7 == 0 ? std::nullopt : std::optional(i / 2), i, 0.5, 1, 0, false, false},
                static_cast<uint64_t>(i), static_cast<uint64_t>(i) + 1);
  }
  for (const auto order : {WalkOrder::kByStep, WalkOrder::kByTime}) {
    SeriesWalk walk(pyramid.chunks(), order, false, {}, []() -> Result<SeriesWalk::Reader> {
      return [](uint64_t from, uint64_t to, const SeriesWalk::Visit& visit) -> Status {
        for (uint64_t i = from; i < to; ++i) {
          const auto at = static_cast<int64_t>(i);
          visit({at % 7 == 0 ? std::nullopt : std::optional(at / 2), at, 0.5, 1, 0, false, false},
                i);
        }
        return Ok();
      };
    });
    walk.GoOnFrom(*place);
    size_t given = 0;
    for (;;) {
      const auto points = walk.Next(100);
      if (!points) std::abort();
      if (points->empty()) break;
      given += points->size();
      if (given > 1500) std::abort();
    }
  }
  return 0;
}
