#include "tune/output.h"

#include <algorithm>
#include <cmath>

#include "tune/math.h"

namespace athanor::tune {
namespace {

constexpr int kLambdas = 25;  // from -2 to 4, in quarters

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// To mean 0 and deviation 1; false when there is no spread.
bool Standardise(std::vector<double>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (double v : values) squares += (v - mean) * (v - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  if (!(deviation > 1e-12) || !std::isfinite(deviation)) return false;
  for (double& v : values) v = (v - mean) / deviation;
  return true;
}

// log1p_abs is log(1 + |y|).
double YeoJohnson(double y, double log1p_abs, double lambda) {
  if (y >= 0) return std::fabs(lambda) < 1e-9 ? log1p_abs : Expm1(lambda * log1p_abs) / lambda;
  const double other = 2 - lambda;
  return std::fabs(other) < 1e-9 ? -log1p_abs : -Expm1(other * log1p_abs) / other;
}

}  // namespace

std::vector<double> WarpOutputs(std::vector<double> values) {
  const size_t n = values.size();
  if (n == 0) return values;
  double largest = 0;
  for (double v : values) largest = std::max(largest, std::fabs(v));
  // Differences of values near 1e308 would overflow.
  if (largest > 1e100) {
    for (double& v : values) v = v / largest;
  }
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
  // A diverged trial says only that it is bad: left as it is, it would hide all other differences.
  const double cap = median + 3.0 * std::max(median - sorted.front(), 0.0);
  if (cap > sorted.front()) {
    for (double& v : values) v = std::min(v, cap);
  }
  // To [0, 1] first: nothing here may depend on the unit that values come in.
  const double scale = std::max(std::fabs(sorted.front()), std::fabs(sorted.back()));
  const double low = sorted.front(), range = *std::max_element(values.begin(), values.end()) - low;
  if (!(range > 1e-14 * scale)) return std::vector<double>(n, 0.0);
  for (double& v : values) v = (v - low) / range;
  if (!Standardise(values)) return std::vector<double>(n, 0.0);
  // The lambda of the greatest profile likelihood; the Jacobian makes those of different ones
  // comparable.
  std::vector<double> logs(n), bent(n), best;
  double jacobian = 0, most = -1e300;
  for (size_t i = 0; i < n; ++i) {
    logs[i] = Log1p(std::fabs(values[i]));
    jacobian += values[i] >= 0 ? logs[i] : -logs[i];
  }
  for (int step = 0; step < kLambdas; ++step) {
    const double lambda = -2.0 + 6.0 * step / (kLambdas - 1);
    for (size_t i = 0; i < n; ++i) bent[i] = YeoJohnson(values[i], logs[i], lambda);
    const double mean = Mean(bent);
    double squares = 0;
    for (double v : bent) squares += (v - mean) * (v - mean);
    const double variance = squares / static_cast<double>(n);
    if (!(variance > 0) || !std::isfinite(variance)) continue;
    const double likelihood =
        -0.5 * static_cast<double>(n) * Log(variance) + (lambda - 1) * jacobian;
    if (likelihood > most) {
      most = likelihood;
      best = bent;
    }
  }
  if (best.empty() || !Standardise(best)) return std::vector<double>(n, 0.0);
  return best;
}

}  // namespace athanor::tune
