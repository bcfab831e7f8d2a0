#include "cli/screen/plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace athanor {
namespace {

TEST(Plot, DrawsARisingLineFromCornerToCorner) {
  const std::string text = PlotText({{0, 0}, {1, 1}, {2, 2}, {3, 3}}, 26, 4, true);
  EXPECT_EQ(text,
            "         3 |            **\n"
            "           |       *****\n"
            "           |   ****\n"
            "         0 |***\n"
            "            0            3\n");
}

TEST(Plot, LeavesAGapWhereAValueIsNotFinite) {
  const std::string text = PlotText({{0, 1}, {1, std::nan("")}, {2, 1}}, 26, 3, true);
  EXPECT_NE(text.find("1 not finite, left out"), std::string::npos) << text;
  EXPECT_EQ(PlotText({{0, INFINITY}}, 26, 3, true), "  no finite values\n");
  EXPECT_EQ(PlotText({}, 26, 3, true), "  no finite values\n");
}

TEST(Plot, StaysWithinItsColumnsWhateverTheValues) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 5000; ++i) {
    points.push_back({static_cast<double>(i) * 1e12, std::sin(i) * 1e300});
  }
  const std::string text = PlotText(points, 60, 10, true);
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 62u);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace athanor
