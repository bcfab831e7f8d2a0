#include "tune/stopping.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tune/math.h"
#include "tune/random.h"

namespace athanor::tune {
namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();
constexpr int kPowers = 16;  // of the curve, from 0.1 to 3.1
constexpr int kBootstraps = 100;

// a + b t^-c by least squares for the best c of the list: with c fixed, a and b are a line's, so no
// start has to be guessed and nothing can fail to converge.
struct Curve {
  double a = 0, b = 0, c = 0, squares = kWorst;
  double At(double t) const { return a + b * Pow(t, -c); }
};

Curve FitCurve(const std::vector<double>& steps, const std::vector<double>& values) {
  Curve best;
  const double n = static_cast<double>(steps.size());
  for (int i = 0; i < kPowers; ++i) {
    const double c = 0.1 + 0.2 * i;
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    std::vector<double> x;
    for (size_t k = 0; k < steps.size(); ++k) {
      x.push_back(Pow(steps[k], -c));
      sx += x[k];
      sy += values[k];
      sxx += x[k] * x[k];
      sxy += x[k] * values[k];
    }
    const double spread = sxx - sx * sx / n;
    if (!(spread > 1e-12 * sxx)) continue;  // all steps are nearly one: no line
    Curve curve;
    curve.c = c;
    curve.b = (sxy - sx * sy / n) / spread;
    curve.a = (sy - curve.b * sx) / n;
    curve.squares = 0;
    for (size_t k = 0; k < steps.size(); ++k) {
      const double miss = values[k] - curve.a - curve.b * x[k];
      curve.squares += miss * miss;
    }
    if (curve.squares < best.squares) best = curve;
  }
  return best;
}

}  // namespace

Asha::Asha(const AshaOptions& options) : options_(options) {
  options_.eta = std::max(options_.eta, 1.5);
  options_.first = std::max<int64_t>(options_.first, 1);
  double step = static_cast<double>(options_.first);
  while (step < static_cast<double>(options_.last)) {
    // Powers of an eta that is not whole may round to just below a whole step.
    const auto rung = static_cast<int64_t>(std::floor(step + 1e-9));
    if (rung < options_.last && (rungs_.empty() || rung > rungs_.back())) rungs_.push_back(rung);
    step *= options_.eta;
  }
  results_.resize(rungs_.size());
  promoted_.resize(rungs_.size());
}

bool Asha::AmongTheBest(size_t rung, const Row& row) const {
  const auto& results = results_[rung];
  // The 1e-9 is for a quotient that rounds to just below a whole number.
  const auto kept =
      static_cast<size_t>(std::floor(static_cast<double>(results.size()) / options_.eta + 1e-9));
  size_t place = 0;
  for (const auto& each : results) {
    if (place >= kept) return false;
    if (!(each < row) && !(row < each)) return true;
    ++place;
  }
  return false;
}

Verdict Asha::Report(int64_t trial, int64_t step, double value) {
  // It may report once more before it hears of its end; that must not count at a rung.
  if (stopped_.count(trial)) return Verdict::kStop;
  auto& next = next_rung_[trial];
  Verdict verdict = Verdict::kGoOn;
  while (next < rungs_.size() && step >= rungs_[next]) {
    const size_t rung = next++;
    const bool broken = !std::isfinite(value);
    const Row row{broken ? kWorst : value, trial};
    results_[rung].insert(row);
    if (broken) {
      stopped_.insert(trial);
      return Verdict::kStop;
    }
    if (options_.form == AshaOptions::Form::kPromotion) {
      verdict = promoted_[rung].count(trial) ? Verdict::kGoOn : Verdict::kPause;
    } else if (static_cast<double>(results_[rung].size()) >= options_.eta &&
               !AmongTheBest(rung, row)) {
      stopped_.insert(trial);
      return Verdict::kStop;
    }
  }
  return verdict;
}

std::optional<Asha::Promotion> Asha::Promote() {
  for (size_t rung = rungs_.size(); rung-- > 0;) {
    for (const auto& row : results_[rung]) {
      if (!AmongTheBest(rung, row)) break;
      // A trial that passed several rungs at once waits at the last of them.
      if (next_rung_[row.trial] != rung + 1 || promoted_[rung].count(row.trial)) continue;
      const auto kept = static_cast<double>(results_[rung].size()) / options_.eta + 1e-9;
      // Those that left this rung count although later trials may have pushed them out of the best.
      if (static_cast<double>(promoted_[rung].size() + 1) > kept) break;
      promoted_[rung].insert(row.trial);
      return Promotion{row.trial, rung + 1 < rungs_.size() ? rungs_[rung + 1] : options_.last};
    }
  }
  return std::nullopt;
}

Hyperband::Hyperband(const AshaOptions& options) {
  const Asha widest(options);
  const size_t many = std::max<size_t>(widest.rungs().size(), 1);
  for (size_t skipped = 0; skipped < many; ++skipped) {
    auto narrowed = options;
    if (!widest.rungs().empty()) narrowed.first = widest.rungs()[skipped];
    brackets_.emplace_back(narrowed);
    // Hyperband's n = ceil((s_max + 1) / (s + 1) eta^s), with s halvings ahead.
    const auto halvings = static_cast<double>(many - skipped);
    shares_.push_back(
        static_cast<size_t>(std::ceil((static_cast<double>(many) + 1) / (halvings + 1) *
                                          Pow(std::max(options.eta, 1.5), halvings) -
                                      1e-9)));
  }
}

// Trials are dealt so that at every moment each bracket has its share, within one: each is owed its
// share of a trial per trial, and the one that is owed most gets it (smooth weighted round robin).
size_t Hyperband::BracketOf(int64_t trial) const {
  size_t total = 0;
  for (size_t share : shares_) total += share;
  const auto turn = static_cast<size_t>(std::max<int64_t>(trial, 0)) % total;
  std::vector<double> owed(shares_.size(), 0.0);
  size_t dealt = 0;
  for (size_t i = 0; i <= turn; ++i) {
    for (size_t b = 0; b < shares_.size(); ++b) {
      owed[b] += static_cast<double>(shares_[b]) / static_cast<double>(total);
    }
    dealt = static_cast<size_t>(std::max_element(owed.begin(), owed.end()) - owed.begin());
    owed[dealt] -= 1.0;
  }
  return dealt;
}

Verdict Hyperband::Report(int64_t trial, int64_t step, double value) {
  return brackets_[BracketOf(trial)].Report(trial, step, value);
}

std::optional<Asha::Promotion> Hyperband::Promote() {
  for (auto& bracket : brackets_) {
    if (auto next = bracket.Promote()) return next;
  }
  return std::nullopt;
}

Verdict MedianRule::Report(int64_t trial, int64_t step, double value) {
  if (!std::isfinite(value)) return step >= grace_ ? Verdict::kStop : Verdict::kGoOn;
  auto& curve = curves_[trial];
  curve.sum += value;
  ++curve.count;
  const double mean = curve.sum / static_cast<double>(curve.count);
  curve.means[step] = mean;
  if (step < grace_ || finished_.count(trial)) return Verdict::kGoOn;
  std::vector<double> others;
  for (int64_t id : finished_) {
    // What it had by this step, though it need not have reported at the very step.
    const auto& means = curves_[id].means;
    const auto after = means.upper_bound(step);
    if (after != means.begin()) others.push_back(std::prev(after)->second);
  }
  if (others.size() < least_finished_) return Verdict::kGoOn;
  std::sort(others.begin(), others.end());
  const size_t n = others.size();
  const double median = 0.5 * (others[(n - 1) / 2] + others[n / 2]);
  return mean > median ? Verdict::kStop : Verdict::kGoOn;
}

void MedianRule::Finished(int64_t trial) {
  if (curves_.count(trial)) finished_.insert(trial);
}

std::optional<double> ChanceToBeat(const std::vector<CurvePoint>& points, int64_t last, double best,
                                   uint64_t seed) {
  std::vector<double> steps, values;
  for (const auto& point : points) {
    if (point.step < 1 || !std::isfinite(point.value)) continue;
    steps.push_back(static_cast<double>(point.step));
    values.push_back(point.value);
  }
  if (steps.size() < 4 || !std::isfinite(best)) return std::nullopt;
  const Curve fitted = FitCurve(steps, values);
  if (!std::isfinite(fitted.squares)) return std::nullopt;
  std::vector<double> misses;
  // Three numbers were fitted: what is left of the scatter is widened by as much.
  const double widen = std::sqrt(static_cast<double>(steps.size()) /
                                 std::max(1.0, static_cast<double>(steps.size()) - 3.0));
  for (size_t i = 0; i < steps.size(); ++i) {
    misses.push_back((values[i] - fitted.At(steps[i])) * widen);
  }
  Random random(seed, points.size(), 0x57);
  int better = 0;
  for (int round = 0; round < kBootstraps; ++round) {
    std::vector<double> drawn;
    for (double step : steps) {
      drawn.push_back(fitted.At(step) + misses[random.Below(static_cast<uint32_t>(misses.size()))]);
    }
    better += FitCurve(steps, drawn).At(static_cast<double>(last)) < best;
  }
  return static_cast<double>(better) / kBootstraps;
}

}  // namespace athanor::tune
