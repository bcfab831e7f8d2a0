#include "track/importance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

namespace athanor {
namespace {

constexpr double kBest = 0.1;  // the part of the runs that counts as best; also Optuna's
constexpr size_t kLeastRuns = 4;
constexpr size_t kCells = 50;  // of a numeric parameter's range; also Optuna's
constexpr double kWide = 100;  // largest by smallest, from which logarithms are compared

std::optional<double> NumberOf(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Each run's cell, and how many there are; numbers are on a line, words are unordered.
struct Cells {
  std::vector<size_t> of;
  size_t count = 0;
  bool line = false;
};

Cells CellsOf(const std::vector<std::string>& values) {
  Cells cells;
  std::vector<double> numbers;
  for (const auto& value : values) {
    const auto number = NumberOf(value);
    if (!number) break;
    numbers.push_back(*number);
  }
  if (numbers.size() == values.size()) {
    auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    if (*least > 0 && *most / *least >= kWide) {
      for (double& number : numbers) number = std::log(number);
    }
    const double low = *least;
    const double span = *most - low;
    cells.line = true;
    cells.count = span > 0 ? kCells : 1;
    for (const double number : numbers) {
      const double at = span > 0 ? (number - low) / span * static_cast<double>(kCells - 1) : 0;
      cells.of.push_back(static_cast<size_t>(std::lround(at)));
    }
    return cells;
  }
  std::map<std::string, size_t> known;
  for (const auto& value : values)
    cells.of.push_back(known.emplace(value, known.size()).first->second);
  cells.count = known.size();
  return cells;
}

// A density over the cells from the runs in `chosen`: counts, and on a line smoothed by a Gaussian
// of Scott's width, half a cell at least: equal values have no width. One more run is spread over
// all cells, because the divergence divides by each.
std::vector<double> Density(const Cells& cells, const std::vector<size_t>& chosen) {
  std::vector<double> counts(cells.count, 0.0);
  for (const size_t run : chosen) counts[cells.of[run]] += 1;
  std::vector<double> density = counts;
  if (cells.line && cells.count > 1) {
    const auto n = static_cast<double>(chosen.size());
    double mean = 0;
    double square = 0;
    for (const size_t run : chosen) mean += static_cast<double>(cells.of[run]) / n;
    for (const size_t run : chosen) {
      const double off = static_cast<double>(cells.of[run]) - mean;
      square += off * off / n;
    }
    const double width = std::max(1.06 * std::sqrt(square) * std::pow(n, -0.2), 0.5);
    std::fill(density.begin(), density.end(), 0.0);
    for (size_t from = 0; from < counts.size(); ++from) {
      if (counts[from] == 0) continue;
      for (size_t to = 0; to < density.size(); ++to) {
        const double z = (static_cast<double>(to) - static_cast<double>(from)) / width;
        density[to] += counts[from] * std::exp(-0.5 * z * z) / width;
      }
    }
  }
  const double prior = 1.0 / static_cast<double>(cells.count);
  const double sum = std::accumulate(density.begin(), density.end(), 0.0);
  const double weight = 1.0 / (static_cast<double>(chosen.size()) + 1.0);
  for (double& d : density) d = (1 - weight) * d / sum + weight * prior;
  return density;
}

// Pearson's: the square of how far the densities differ, relative to that of all runs.
double Divergence(const std::vector<double>& best, const std::vector<double>& all) {
  double sum = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const double off = best[i] / all[i] - 1;
    sum += off * off * all[i];
  }
  return sum;
}

double WeightOf(const std::vector<double>& losses, const ParamColumn& column) {
  std::vector<std::string> values;
  std::vector<double> own;
  for (size_t run = 0; run < losses.size(); ++run) {
    if (!column.values[run]) continue;
    values.push_back(*column.values[run]);
    own.push_back(losses[run]);
  }
  if (values.size() < kLeastRuns) return 0;
  const Cells cells = CellsOf(values);
  if (cells.count < 2) return 0;
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const std::vector<size_t> all = order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (std::isnan(own[a]) || std::isnan(own[b])) return !std::isnan(own[a]) && std::isnan(own[b]);
    return own[a] < own[b];
  });
  // At least two: one run alone is somewhere by chance.
  const auto best = std::max<size_t>(
      2, static_cast<size_t>(std::ceil(kBest * static_cast<double>(order.size()))));
  order.resize(best);
  return Divergence(Density(cells, order), Density(cells, all));
}

}  // namespace

std::vector<ParamWeight> ParamWeights(const std::vector<double>& losses,
                                      const std::vector<ParamColumn>& columns) {
  std::vector<ParamWeight> weights;
  double sum = 0;
  for (const auto& column : columns) {
    weights.push_back({column.name, WeightOf(losses, column)});
    sum += weights.back().importance;
  }
  for (auto& weight : weights) weight.importance = sum > 0 ? weight.importance / sum : 0;
  std::sort(weights.begin(), weights.end(), [](const ParamWeight& a, const ParamWeight& b) {
    if (a.importance != b.importance) return a.importance > b.importance;
    return a.name < b.name;
  });
  return weights;
}

}  // namespace athanor
