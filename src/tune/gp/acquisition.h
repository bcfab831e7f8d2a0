// How much a point promises: the log of its expected improvement on `best` under the objective's
// Gaussian process, plus the log of the chance that it does not fail. Higher is better.
//
// Follows Ament et al. 2023 (LogEI: the log keeps a slope where the improvement itself would round
// to 0) and Gardner et al. 2014 (times the chance to be feasible). Ours is the minimum chance:
// where trials fail, nothing is ever observed, so the improvement expected there never shrinks.
// Below that chance, a penalty grows that no improvement can make up for.
#pragma once

#include <vector>

#include "tune/gp/gp.h"

namespace athanor::tune {

class Acquisition {
 public:
  // Only the dimensions `free` of a point count. The processes are conditioned and outlive this.
  Acquisition(Gp& objective, std::vector<size_t> free, double best);
  // Labels were +1 and -1, centred by `offset` and divided by `scale`.
  void Feasible(Gp& labels, double offset, double scale, double least_chance);

  void Values(const std::vector<Point>& points, std::vector<double>& out);
  double ValueWithSlope(const Point& point, std::vector<double>& slope);

 private:
  Point Free(const Point& point) const;

  Gp& objective_;
  std::vector<size_t> free_;
  double best_;
  Gp* labels_ = nullptr;
  double offset_ = 0, scale_ = 1;
  double least_ = 0;  // chance, as a quantile of the normal distribution
};

}  // namespace athanor::tune
