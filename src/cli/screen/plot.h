// A series as a chart of characters: for `ath metrics --plot`. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace athanor {

inline constexpr size_t kPlotRows = 12;

struct PlotPoint {
  double x = 0;
  double y = 0;  // NaN and infinities are marked below the chart
};

// `rows` lines of at most `columns` characters with the values' scale on the left, and one with
// that of the steps. Two by four dots per character; with `ascii`, one star.
std::string PlotText(const std::vector<PlotPoint>& points, size_t columns, size_t rows, bool ascii);

}  // namespace athanor
