#include "tune/gp/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace athanor::tune {
namespace {

constexpr size_t kMemory = 8;   // steps that the curvature is estimated from
constexpr double kBad = 1e100;  // for a value that is not finite: the line search steps back

// A step and by how much it changed the gradient.
struct Pair {
  std::vector<double> s, y;
  double sy;
};

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class Descent {
 public:
  Descent(const Smooth& f, const Box& box, const MinimiseOptions& options)
      : f_(f), box_(box), options_(options) {}

  Minimum Run(std::vector<double> x) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(x[i], box_.low[i], box_.high[i]);
    best_.x = std::move(x);
    gradient_.assign(best_.x.size(), 0.0);
    best_.value = Evaluate(best_.x, gradient_);
    while (best_.evaluations < options_.evaluations && Iterate()) {
    }
    return std::move(best_);
  }

 private:
  double Evaluate(const std::vector<double>& x, std::vector<double>& gradient) {
    ++best_.evaluations;
    const double value = f_(x, gradient);
    for (double& g : gradient) {
      if (!std::isfinite(g)) g = 0;
    }
    return std::isfinite(value) ? value : kBad;
  }

  // At a bound, and the way down leads out of the box.
  bool Held(size_t i) const {
    return (best_.x[i] <= box_.low[i] && gradient_[i] > 0) ||
           (best_.x[i] >= box_.high[i] && gradient_[i] < 0);
  }

  // Minus the inverse Hessian, as the pairs have it, times the gradient.
  std::vector<double> Direction() const {
    const size_t d = gradient_.size();
    std::vector<double> q(d);
    for (size_t i = 0; i < d; ++i) q[i] = Held(i) ? 0.0 : -gradient_[i];
    std::vector<double> a(pairs_.size());
    for (size_t p = pairs_.size(); p-- > 0;) {
      a[p] = Dot(pairs_[p].s, q) / pairs_[p].sy;
      for (size_t i = 0; i < d; ++i) q[i] -= a[p] * pairs_[p].y[i];
    }
    if (!pairs_.empty()) {
      // Between the loops, the newest curvature is that of all directions.
      const double scale = pairs_.back().sy / Dot(pairs_.back().y, pairs_.back().y);
      for (double& each : q) each *= scale;
    }
    for (size_t p = 0; p < pairs_.size(); ++p) {
      const double b = Dot(pairs_[p].y, q) / pairs_[p].sy;
      for (size_t i = 0; i < d; ++i) q[i] += (a[p] - b) * pairs_[p].s[i];
    }
    // The loops mix coordinates, so the held ones may move again.
    for (size_t i = 0; i < d; ++i) {
      if (Held(i)) q[i] = 0;
    }
    return q;
  }

  bool Iterate() {
    auto direction = Direction();
    // Pairs from when other coordinates were held may lead uphill: then the steepest way down, and
    // if there is none, this is the minimum.
    if (!(Dot(direction, gradient_) < 0)) {
      pairs_.clear();
      direction = Direction();
      if (!(Dot(direction, gradient_) < 0)) return false;
    }
    // Without pairs, the length of the gradient says nothing about how far to go.
    double length = std::sqrt(Dot(direction, direction));
    double step = 1.0;
    if (pairs_.empty() && length > options_.step) step = options_.step / length;
    std::vector<double> x(best_.x.size()), gradient(best_.x.size());
    for (int tries = 0; tries < 12; ++tries, step *= 0.35) {
      double expected = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = std::clamp(best_.x[i] + step * direction[i], box_.low[i], box_.high[i]);
        expected += gradient_[i] * (x[i] - best_.x[i]);
      }
      if (x == best_.x) return false;  // the box, or the rounding, leaves no step
      if (best_.evaluations >= options_.evaluations) return false;
      // Armijo's rule: a ten thousandth of what the slope promises. The clipped step may promise
      // nothing; then it must only not be worse.
      const double value = Evaluate(x, gradient);
      if (value <= best_.value + 1e-4 * std::min(expected, 0.0)) {
        return Accept(std::move(x), std::move(gradient), value);
      }
    }
    if (pairs_.empty()) return false;
    pairs_.clear();  // the curvature is of somewhere else: once more without it
    return true;
  }

  bool Accept(std::vector<double> x, std::vector<double> gradient, double value) {
    Pair pair;
    for (size_t i = 0; i < x.size(); ++i) {
      pair.s.push_back(x[i] - best_.x[i]);
      pair.y.push_back(gradient[i] - gradient_[i]);
    }
    pair.sy = Dot(pair.s, pair.y);
    // Only upward curvature: otherwise the estimate would no longer be positive definite.
    if (pair.sy > 1e-10 * Dot(pair.y, pair.y)) {
      pairs_.push_back(std::move(pair));
      if (pairs_.size() > kMemory) pairs_.pop_front();
    }
    const double gain = best_.value - value;
    best_.x = std::move(x);
    best_.value = value;
    gradient_ = std::move(gradient);
    return gain > options_.tolerance * std::max(1.0, std::fabs(value));
  }

  const Smooth& f_;
  const Box& box_;
  const MinimiseOptions& options_;
  Minimum best_;
  std::vector<double> gradient_;
  std::deque<Pair> pairs_;
};

}  // namespace

Minimum Minimise(const Smooth& f, std::vector<double> start, const Box& box,
                 const MinimiseOptions& options) {
  return Descent(f, box, options).Run(std::move(start));
}

}  // namespace athanor::tune
