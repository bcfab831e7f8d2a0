#include "tune/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tune/gp/lbfgs.h"
#include "tune/strategies.h"

namespace athanor::tune {
namespace {

constexpr size_t kKept = 8;           // points from which a round continues
constexpr size_t kChildren = 10;      // mutants of each
constexpr size_t kAlternatives = 16;  // other choices a sweep tries

struct Scored {
  Point point;
  double value;
};

class MixedSearch {
 public:
  MixedSearch(const Space& space, Acquisition& acquisition, Random& random, const SearchSize& size)
      : space_(space), acquisition_(acquisition), random_(random), size_(size) {
    for (size_t i = 0; i < space.size(); ++i) {
      const auto& p = space.parameters()[i];
      if (p.fixed()) continue;
      free_.push_back(i);
      (p.kind == Kind::kFloat ? floats_ : discrete_).push_back(i);
    }
  }

  std::vector<Point> Run(const std::vector<Point>& good) {
    std::vector<Point> batch;
    for (size_t i = 0; i < size_.global; ++i) batch.push_back(RandomPoint(space_, random_));
    for (size_t g = 0; g < good.size(); ++g) {
      for (size_t i = 0; i < size_.mutants; ++i) {
        // Wide, near and very near: how broad the hill is, is not known.
        batch.push_back(Mutant(good[g], i % 3 == 0 ? 0.25 : i % 3 == 1 ? 0.1 : 0.02));
      }
    }
    Score(std::move(batch));
    double step = 0.15;  // halved each round: the pool closes in on its hills
    for (size_t round = 0; round < size_.rounds; ++round, step *= 0.5) {
      const size_t kept = std::min(kKept, pool_.size());
      std::vector<Point> children;
      for (size_t i = 0; i < kept; ++i) {
        for (size_t c = 0; c < kChildren; ++c) children.push_back(Mutant(pool_[i].point, step));
      }
      Score(std::move(children));
    }
    Climb();
    for (size_t i = 0; i < size_.sweeps && !discrete_.empty() && Sweep(); ++i) {
    }
    std::vector<Point> out;
    for (auto& each : pool_) out.push_back(std::move(each.point));
    return out;
  }

 private:
  // Adds points to the pool and keeps it sorted, best first, and short.
  void Score(std::vector<Point> points) {
    std::vector<double> values;
    acquisition_.Values(points, values);
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::isfinite(values[i])) pool_.push_back({std::move(points[i]), values[i]});
    }
    std::stable_sort(pool_.begin(), pool_.end(),
                     [](const Scored& a, const Scored& b) { return a.value > b.value; });
    // Copies would crowd out what is different.
    pool_.erase(std::unique(pool_.begin(), pool_.end(),
                            [](const Scored& a, const Scored& b) { return a.point == b.point; }),
                pool_.end());
    if (pool_.size() > 64) pool_.resize(64);
  }

  Point Mutant(const Point& from, double step) {
    Point point = from;
    // About a third of the coordinates, of many dimensions too; in few, about two. One changes
    // surely, so that the mutant is no copy.
    const double chance = std::max(0.3, 2.0 / static_cast<double>(free_.size()));
    const size_t surely =
        free_.empty() ? 0 : free_[random_.Below(static_cast<uint32_t>(free_.size()))];
    for (size_t i : free_) {
      if (i != surely && random_.Uniform() > chance) continue;
      const auto& p = space_.parameters()[i];
      if (p.kind == Kind::kChoice) {
        if (i == surely || random_.Uniform() < 0.5) {
          point[i] = random_.Below(static_cast<uint32_t>(p.choices.size()));
        }
        continue;
      }
      double scale = step;
      if (p.kind == Kind::kInt) {
        // At least a cell: a smaller step rounds back to the same int.
        const double cells = p.high - p.low + 1;
        if (p.scale == Scale::kLinear) scale = std::max(step, 1.0 / cells);
      }
      point[i] = std::clamp(point[i] + scale * random_.Normal(), 0.0, 1.0);
    }
    space_.Snap(point);
    return point;
  }

  // Gradient ascent on the floats of the best points that are apart: others climb the same hill.
  void Climb() {
    if (floats_.empty()) return;
    std::vector<Point> starts;
    for (const auto& each : pool_) {
      if (starts.size() == size_.ascents) break;
      const bool apart = std::all_of(starts.begin(), starts.end(), [&](const Point& other) {
        return Apart(each.point, other) > 0.05;
      });
      if (apart) starts.push_back(each.point);
    }
    std::vector<Point> tops;
    for (const auto& start : starts) tops.push_back(Ascend(start));
    Score(std::move(tops));
  }

  double Apart(const Point& a, const Point& b) const {
    double most = 0;
    for (size_t i : free_) {
      const bool choice = space_.parameters()[i].kind == Kind::kChoice;
      most = std::max(most, choice ? (a[i] != b[i] ? 1.0 : 0.0) : std::fabs(a[i] - b[i]));
    }
    return most;
  }

  Point Ascend(const Point& start) {
    Point at = start;
    std::vector<size_t> moving;
    // An inactive float changes nothing.
    const auto values = space_.Decode(start);
    for (size_t i : floats_) {
      if (values[i]) moving.push_back(i);
    }
    if (moving.empty()) return at;
    Box box{std::vector<double>(moving.size(), 0.0), std::vector<double>(moving.size(), 1.0)};
    std::vector<double> x, slope;
    for (size_t i : moving) x.push_back(at[i]);
    MinimiseOptions options;
    options.evaluations = size_.evaluations;
    options.step = 0.1;  // of the range; a longer first step may leave the hill
    options.tolerance = 1e-5;
    const auto top = Minimise(
        [&](const std::vector<double>& each, std::vector<double>& gradient) {
          for (size_t i = 0; i < moving.size(); ++i) at[moving[i]] = each[i];
          const double value = acquisition_.ValueWithSlope(at, slope);
          for (size_t i = 0; i < moving.size(); ++i) gradient[i] = -slope[moving[i]];
          return -value;
        },
        x, box, options);
    for (size_t i = 0; i < moving.size(); ++i) at[moving[i]] = top.x[i];
    space_.Snap(at);
    return at;
  }

  // All neighbours of the best point in its ints and choices; true if one is better, which is
  // then climbed from.
  bool Sweep() {
    if (pool_.empty()) return false;
    const Scored best = pool_.front();
    std::vector<Point> around;
    for (size_t i : discrete_) {
      const auto& p = space_.parameters()[i];
      const auto add = [&](double coordinate) {
        Point point = best.point;
        point[i] = coordinate;
        space_.Snap(point);
        if (point != best.point) around.push_back(std::move(point));
      };
      if (p.kind == Kind::kChoice) {
        const size_t count = p.choices.size();
        if (count <= kAlternatives) {
          for (size_t c = 0; c < count; ++c) add(static_cast<double>(c));
        } else {
          for (size_t c = 0; c < kAlternatives; ++c)
            add(random_.Below(static_cast<uint32_t>(count)));
        }
        continue;
      }
      const auto values = space_.Decode(best.point);
      if (!values[i]) continue;
      const auto now = std::get<int64_t>(*values[i]);
      for (int64_t jump : {-8, -3, -2, -1, 1, 2, 3, 8}) {
        auto moved = values;
        moved[i] =
            std::clamp(now + jump, static_cast<int64_t>(p.low), static_cast<int64_t>(p.high));
        add(space_.Encode(moved)[i]);
      }
    }
    Score(std::move(around));
    if (pool_.front().point == best.point) return false;
    if (!floats_.empty()) Score({Ascend(pool_.front().point)});
    return true;
  }

  const Space& space_;
  Acquisition& acquisition_;
  Random& random_;
  const SearchSize& size_;
  std::vector<size_t> free_, floats_, discrete_;
  std::vector<Scored> pool_;
};

}  // namespace

std::vector<Point> SearchMixed(const Space& space, Acquisition& acquisition,
                               const std::vector<Point>& good, Random& random,
                               const SearchSize& size) {
  return MixedSearch(space, acquisition, random, size).Run(good);
}

}  // namespace athanor::tune
