#include "tune/gp/acquisition.h"

#include <algorithm>
#include <cmath>

#include "tune/math.h"

namespace athanor::tune {
namespace {

constexpr double kLabelNoise = 0.05;  // of labels; keeps the chance of a seen point below 1
// The penalty for each deviation below the least chance: more than a log improvement, which goes
// down to about -1e6, can make up for.
constexpr double kWall = 1e7;

}  // namespace

Acquisition::Acquisition(Gp& objective, std::vector<size_t> free, double best)
    : objective_(objective), free_(std::move(free)), best_(best) {}

void Acquisition::Feasible(Gp& labels, double offset, double scale, double least_chance) {
  labels_ = &labels;
  offset_ = offset;
  scale_ = scale;
  least_ = NormalQuantile(least_chance);
}

Point Acquisition::Free(const Point& point) const {
  Point out(free_.size());
  for (size_t i = 0; i < free_.size(); ++i) out[i] = point[free_[i]];
  return out;
}

void Acquisition::Values(const std::vector<Point>& points, std::vector<double>& out) {
  std::vector<Point> free;
  free.reserve(points.size());
  for (const auto& point : points) free.push_back(Free(point));
  std::vector<Prediction> predicted;
  objective_.Predict(free, predicted);
  out.resize(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& p = predicted[i];
    // The improvement is the deviation times that of a standard normal: in logs, a sum.
    out[i] = LogExpectedImprovement((best_ - p.mean) / p.deviation).value + Log(p.deviation);
  }
  if (!labels_) return;
  labels_->Predict(free, predicted);
  for (size_t i = 0; i < points.size(); ++i) {
    // Labels are 1 and -1: the chance that the one of this point is above 0.
    const double mean = offset_ + scale_ * predicted[i].mean;
    const double spread = scale_ * predicted[i].deviation;
    const double ratio = mean / std::sqrt(spread * spread + kLabelNoise);
    out[i] += LogNormalCdf(ratio) - kWall * std::max(0.0, least_ - ratio);
  }
}

double Acquisition::ValueWithSlope(const Point& point, std::vector<double>& slope) {
  const Point free = Free(point);
  PredictionSlope p;
  objective_.PredictWithSlope(free, p);
  const double z = (best_ - p.at.mean) / p.at.deviation;
  const auto improvement = LogExpectedImprovement(z);
  double value = improvement.value + Log(p.at.deviation);
  slope.assign(point.size(), 0.0);
  for (size_t i = 0; i < free_.size(); ++i) {
    // Of z, by the quotient rule.
    const double dz = (-p.mean[i] - z * p.deviation[i]) / p.at.deviation;
    slope[free_[i]] = improvement.slope * dz + p.deviation[i] / p.at.deviation;
  }
  if (!labels_) return value;
  labels_->PredictWithSlope(free, p);
  const double mean = offset_ + scale_ * p.at.mean;
  const double spread = scale_ * p.at.deviation;
  const double total = std::sqrt(spread * spread + kLabelNoise);
  const double ratio = mean / total;
  const double log_chance = LogNormalCdf(ratio);
  value += log_chance - kWall * std::max(0.0, least_ - ratio);
  // The derivative of log Phi is phi / Phi, taken in logs because both vanish far below 0.
  const double hazard = Exp(-0.5 * ratio * ratio - 0.91893853320467274178 - log_chance) +
                        (ratio < least_ ? kWall : 0.0);
  for (size_t i = 0; i < free_.size(); ++i) {
    const double by_total = spread * scale_ * p.deviation[i] / total;
    slope[free_[i]] += hazard * (scale_ * p.mean[i] - ratio * by_total) / total;
  }
  return value;
}

}  // namespace athanor::tune
