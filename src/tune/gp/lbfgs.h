// Minimises a smooth function in a box: limited-memory BFGS on the coordinates that are not held
// at a bound, with a backtracking line search along the projected path. Deterministic. Follows
// Nocedal 1980 (the two loops over the last steps) and Bertsekas 1982 (bounds by projection).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace athanor::tune {

struct Box {
  std::vector<double> low;
  std::vector<double> high;
};

// Returns the value at x and fills the gradient.
using Smooth = std::function<double(const std::vector<double>& x, std::vector<double>& gradient)>;

struct Minimum {
  std::vector<double> x;
  double value = 0;
  size_t evaluations = 0;
};

struct MinimiseOptions {
  size_t evaluations = 50;  // at most
  double step = 1.0;        // length of the first step, at most
  double tolerance = 1e-6;  // ends when an iteration gains less than this, relatively
};

// `start` is clipped into the box. Values that are not finite count as very bad.
Minimum Minimise(const Smooth& f, std::vector<double> start, const Box& box,
                 const MinimiseOptions& options);

}  // namespace athanor::tune
