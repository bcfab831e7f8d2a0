// Strategies that learn nothing: random, Sobol and grid.
#include <algorithm>
#include <cmath>
#include <set>

#include "tune/sobol.h"
#include "tune/strategies.h"

namespace athanor::tune {
namespace {

constexpr size_t kLevels = 5;  // values that a grid takes of a range by default

double Stretched(const Parameter& p, double u) {
  if (p.kind == Kind::kConstant) return 0;
  if (p.kind != Kind::kChoice) return u;
  const auto count = static_cast<double>(p.choices.size());
  return std::min(std::floor(u * count), count - 1);
}

uint64_t LevelsOf(const Parameter& p) {
  if (p.fixed()) return 1;
  if (p.kind == Kind::kChoice) return p.choices.size();
  if (p.kind == Kind::kFloat) return p.levels ? p.levels : kLevels;
  const auto all = static_cast<uint64_t>(p.high - p.low) + 1;
  return std::min<uint64_t>(all, p.levels ? p.levels : all <= 10 ? all : kLevels);
}

// From end to end of the range, on its scale.
double LevelAt(const Parameter& p, uint64_t level, uint64_t levels) {
  if (p.kind == Kind::kChoice || p.kind == Kind::kConstant) return static_cast<double>(level);
  if (levels == 1) return 0.5;
  const double t = static_cast<double>(level) / static_cast<double>(levels - 1);
  // An int's cells at both ends are half outside; their middles are the ends of the range.
  if (p.kind == Kind::kInt && p.scale == Scale::kLinear) {
    const double count = p.high - p.low + 1;
    return (std::round(t * (count - 1)) + 0.5) / count;
  }
  return t;
}

Point Cell(const Space& space, uint64_t index) {
  Point point;
  for (const auto& p : space.parameters()) {
    const uint64_t levels = LevelsOf(p);
    point.push_back(LevelAt(p, index % levels, levels));
    index /= levels;
  }
  return point;
}

}  // namespace

Point RandomPoint(const Space& space, Random& random) {
  Point point;
  for (const auto& p : space.parameters()) point.push_back(Stretched(p, random.Uniform()));
  space.Snap(point);
  return point;
}

Point SobolPoint(const Space& space, uint64_t seed, uint64_t index) {
  Point point;
  size_t dimension = 0;
  for (const auto& p : space.parameters()) {
    const double u =
        p.fixed() ? 0.5 : ScrambledSobol(dimension++, static_cast<uint32_t>(index), seed);
    point.push_back(Stretched(p, u));
  }
  space.Snap(point);
  return point;
}

std::optional<uint64_t> GridSize(const Space& space) {
  uint64_t product = 1;
  for (const auto& p : space.parameters()) {
    const uint64_t levels = LevelsOf(p);
    if (levels > uint64_t{1'000'000'000'000'000} / product) return std::nullopt;
    product *= levels;
  }
  return product;
}

// Cells are asked for in order; those that conditions make equal are passed over.
std::optional<Assignment> GridValues(const Space& space, const History& history) {
  const uint64_t size = GridSize(space).value_or(0);
  for (uint64_t cell = 0; cell < size; ++cell) {
    auto values = space.Decode(Cell(space, cell));
    if (!history.Tried(values)) return values;
  }
  // Failed cells are repeated once: a count of 1 is one failure and nothing else.
  std::map<std::string, int> failures;
  for (const auto& trial : history.trials()) {
    if (trial.state == Trial::State::kFailed) {
      ++failures[KeyOf(trial.values)];
    } else {
      failures[KeyOf(trial.values)] += 2;
    }
  }
  for (const auto& trial : history.trials()) {
    if (failures[KeyOf(trial.values)] == 1) return trial.values;
  }
  return std::nullopt;
}

}  // namespace athanor::tune
