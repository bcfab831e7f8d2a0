// A multivariate tree of Parzen estimators. Trials are split into a good tenth and the others; each
// side is a mixture of product kernels, one per trial, and a uniform prior. Points are drawn from
// the good side and ordered by the ratio of the densities. Running trials count among the others,
// so that parallel asks stay apart. Parameters that a trial did not have (conditions) are drawn
// from the prior when the drawn point has them, and have no weight if it does not.
//
// Follows Bergstra et al. 2011, with one product kernel for all parameters as BOHB (Falkner et al.
// 2018) and Scott's rate for its width; the good tenth, at most 25, is Optuna's.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/math.h"
#include "tune/strategies.h"

namespace athanor::tune {
namespace {

constexpr size_t kFirst = 10;        // drawn by Sobol before
constexpr size_t kMostGood = 25;     // so that the good side stays narrow
constexpr size_t kMostOthers = 500;  // newest; the density hardly changes beyond
constexpr size_t kDraws = 48;

class Mixture {
 public:
  Mixture(const Space& space, std::vector<const Trial*> trials)
      : space_(space), trials_(std::move(trials)) {
    const double n = static_cast<double>(trials_.size()) + 1.0;
    const double d = static_cast<double>(space.size());
    // Scott's rate, from a fifth of the range on. The bounds matter only for very many trials.
    width_ = std::clamp(0.2 * Exp(-Log(n) / (d + 4.0)), 0.02, 0.5);
    for (const auto& p : space.parameters()) {
      const auto count = static_cast<double>(p.choices.size());
      const double stay = Stay(p);
      apart_.push_back(p.kind == Kind::kChoice ? Log(1 - stay) : 0);
      same_.push_back(p.kind == Kind::kChoice ? Log(1 - stay + stay * count) : 0);
    }
    for (const auto* trial : trials_) {
      for (size_t i = 0; i < space.size(); ++i) {
        const double at = trial->point[i];
        const bool numeric = space.parameters()[i].kind != Kind::kChoice;
        // By the mass inside the range: a kernel at an edge would otherwise count half.
        peaks_.push_back(numeric ? -Log(2.5066282746310002 * width_ * Mass(at)) : 0);
      }
    }
  }

  Point Draw(Random& random) const {
    const auto pick = random.Below(static_cast<uint32_t>(trials_.size() + 1));
    if (pick == trials_.size()) return RandomPoint(space_, random);
    const auto& trial = *trials_[pick];
    Point point = RandomPoint(space_, random);
    for (size_t i = 0; i < space_.size(); ++i) {
      const auto& p = space_.parameters()[i];
      if (p.fixed() || !trial.values[i]) continue;
      if (p.kind == Kind::kChoice) {
        if (random.Uniform() < Stay(p)) point[i] = trial.point[i];
        continue;
      }
      // Normal, cut at the ends.
      const double at = trial.point[i];
      const double low = NormalCdf(-at / width_), high = NormalCdf((1 - at) / width_);
      // The quantiles of 0 and 1 are infinite.
      const double u = std::clamp(low + random.Uniform() * (high - low), 1e-12, 1 - 1e-12);
      point[i] = std::clamp(at + width_ * NormalQuantile(u), 0.0, 1.0);
    }
    space_.Snap(point);
    return point;
  }

  // Relative to the prior, which is even; summed from the greatest, so that nothing overflows.
  double LogDensity(const Point& point, const Assignment& values) const {
    std::vector<double> logs = {0.0};  // the prior
    double most = 0;
    for (size_t t = 0; t < trials_.size(); ++t) {
      const auto* trial = trials_[t];
      double sum = 0;
      for (size_t i = 0; i < space_.size(); ++i) {
        const auto& p = space_.parameters()[i];
        if (p.fixed() || !values[i] || !trial->values[i]) continue;
        if (p.kind == Kind::kChoice) {
          sum += trial->point[i] == point[i] ? same_[i] : apart_[i];
        } else {
          const double z = (point[i] - trial->point[i]) / width_;
          sum += peaks_[t * space_.size() + i] - 0.5 * z * z;
        }
      }
      logs.push_back(sum);
      most = std::max(most, sum);
    }
    double total = 0;
    for (double each : logs) total += Exp(each - most);
    return most + Log(total / static_cast<double>(logs.size()));
  }

 private:
  // The probability that a choice is taken from the trial and not from the prior, which weighs as
  // much as a trial for each choice, ten at most.
  double Stay(const Parameter& p) const {
    const auto n = static_cast<double>(trials_.size());
    const auto count = static_cast<double>(p.choices.size());
    return n / (n + std::min(count, 10.0));
  }
  double Mass(double at) const { return NormalCdf((1 - at) / width_) - NormalCdf(-at / width_); }

  const Space& space_;
  std::vector<const Trial*> trials_;
  double width_;
  std::vector<double> same_, apart_;  // by parameter: log densities of a choice
  std::vector<double> peaks_;         // by trial and parameter: those at the middle of a range
};

}  // namespace

std::vector<Point> TpePoints(const Space& space, const Settings& settings, const History& history) {
  std::vector<const Trial*> done, others;
  for (size_t i : history.told()) {
    const auto& trial = history.trials()[i];
    (trial.state == Trial::State::kDone ? done : others).push_back(&trial);
  }
  if (done.size() < 3 || history.trials().size() < kFirst) return {};
  std::stable_sort(done.begin(), done.end(),
                   [](const Trial* a, const Trial* b) { return a->value < b->value; });
  const size_t good = std::min<size_t>(kMostGood, (done.size() + 9) / 10);
  others.insert(others.end(), done.begin() + static_cast<ptrdiff_t>(good), done.end());
  std::stable_sort(others.begin(), others.end(),
                   [](const Trial* a, const Trial* b) { return a->id > b->id; });
  if (others.size() > kMostOthers) others.resize(kMostOthers);
  for (size_t i : history.Running()) others.push_back(&history.trials()[i]);
  done.resize(good);

  // All draws are returned: the best may have been tried before.
  const Mixture better(space, done), worse(space, others);
  Random random(settings.seed, history.asks(), kParzen);
  struct Scored {
    Point point;
    double score;
  };
  std::vector<Scored> drawn;
  for (size_t i = 0; i < kDraws; ++i) {
    Point point = better.Draw(random);
    const auto values = space.Decode(point);
    const double score = better.LogDensity(point, values) - worse.LogDensity(point, values);
    drawn.push_back({std::move(point), score});
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  std::vector<Point> out;
  for (auto& each : drawn) out.push_back(std::move(each.point));
  return out;
}

}  // namespace athanor::tune
