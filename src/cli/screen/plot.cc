#include "cli/screen/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/text/format.h"

namespace athanor {
namespace {

constexpr size_t kScaleWidth = 10;
constexpr size_t kLeastWidth = 10;

std::string Utf8(uint32_t code) {
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

// A canvas of dots, `width` by `height` characters.
class Canvas {
 public:
  Canvas(size_t width, size_t height, bool ascii)
      : ascii_(ascii), width_(width), height_(height), cells_(width * height) {}

  size_t dots_across() const { return width_ * (ascii_ ? 1 : 2); }
  size_t dots_down() const { return height_ * (ascii_ ? 1 : 4); }

  void Set(size_t x, size_t y) {
    if (ascii_) {
      cells_[y * width_ + x] = 1;
      return;
    }
    // How Unicode numbers the dots of a braille character.
    static constexpr uint8_t kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_[y / 4 * width_ + x / 2] |= kDots[y % 4][x % 2];
  }
  std::string Row(size_t row) const {
    std::string text;
    for (size_t i = 0; i < width_; ++i) {
      const uint8_t cell = cells_[row * width_ + i];
      if (ascii_) {
        text += cell != 0 ? '*' : ' ';
      } else {
        text += cell != 0 ? Utf8(0x2800u + cell) : " ";
      }
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  bool ascii_;
  size_t width_;
  size_t height_;
  std::vector<uint8_t> cells_;
};

size_t DotOf(double value, double low, double high, size_t dots) {
  const double share = high > low ? (value - low) / (high - low) : 0.5;
  return std::min(dots - 1,
                  static_cast<size_t>(std::lround(share * static_cast<double>(dots - 1))));
}

}  // namespace

std::string PlotText(const std::vector<PlotPoint>& points, size_t columns, size_t rows,
                     bool ascii) {
  double low = INFINITY;
  double high = -INFINITY;
  size_t odd = 0;
  for (const auto& point : points) {
    odd += std::isfinite(point.y) ? 0 : 1;
    if (!std::isfinite(point.y)) continue;
    low = std::min(low, point.y);
    high = std::max(high, point.y);
  }
  if (points.empty() || low > high) return "  no finite values\n";
  const double left = points.front().x;
  const double right = points.back().x;
  const size_t width =
      columns > kScaleWidth + 2 + kLeastWidth ? columns - kScaleWidth - 2 : kLeastWidth;
  Canvas canvas(width, rows, ascii);
  size_t last_x = 0;
  size_t last_y = 0;
  bool drawn = false;
  for (const auto& point : points) {
    if (!std::isfinite(point.y)) {
      drawn = false;  // a gap
      continue;
    }
    const size_t x = DotOf(point.x, left, right, canvas.dots_across());
    const size_t y = canvas.dots_down() - 1 - DotOf(point.y, low, high, canvas.dots_down());
    canvas.Set(x, y);
    // Between neighbours a line, so that a steep series is not a cloud.
    const size_t steps =
        drawn ? std::max(x - std::min(x, last_x), y > last_y ? y - last_y : last_y - y) : 0;
    for (size_t i = 1; i < steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(steps);
      canvas.Set(static_cast<size_t>(
                     std::lround(static_cast<double>(last_x) +
                                 share * (static_cast<double>(x) - static_cast<double>(last_x)))),
                 static_cast<size_t>(
                     std::lround(static_cast<double>(last_y) +
                                 share * (static_cast<double>(y) - static_cast<double>(last_y)))));
    }
    last_x = x;
    last_y = y;
    drawn = true;
  }
  std::string out;
  for (size_t row = 0; row < rows; ++row) {
    const std::string scale = row == 0          ? fmt::format("{:.4g}", high)
                              : row + 1 == rows ? fmt::format("{:.4g}", low)
                                                : "";
    out += fmt::format("{:>{}} {}{}\n", scale, kScaleWidth, ascii ? "|" : "│", canvas.Row(row));
  }
  const std::string begin = fmt::format("{:.10g}", left);
  const std::string end = fmt::format("{:.10g}", right);
  const size_t gap = width > begin.size() + end.size() ? width - begin.size() - end.size() : 1;
  out += fmt::format("{:>{}}  {}{}{}\n", "", kScaleWidth, begin, std::string(gap, ' '), end);
  if (odd > 0) out += fmt::format("{:>{}}  {} not finite, left out\n", "", kScaleWidth, odd);
  return out;
}

}  // namespace athanor
