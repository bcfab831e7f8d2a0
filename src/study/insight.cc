#include "study/insight.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "study/decide.h"
#include "tune/space.h"

namespace athanor {
namespace {

constexpr size_t kLeastTrials = 8;
constexpr size_t kCells = 64;
constexpr double kEdge = 0.02;  // of a range
constexpr size_t kLeastForConverging = 20;

struct Row {
  tune::Assignment values;
  tune::Point point;
  double loss = 0;  // lower is better
};

// Finished trials that fit the space, the best first.
std::vector<Row> RowsOf(const StudyRecord& record, const tune::Space& space) {
  std::vector<Row> rows;
  for (const auto& trial : record.trials) {
    if (trial.state != TrialState::kDone || !trial.value) continue;
    auto params = ParseJson(trial.params);
    if (!params) continue;
    auto values = space.FromJson(*params, true);
    if (!values) continue;
    auto point = space.Encode(*values);
    rows.push_back({std::move(*values), std::move(point), record.spec.maximize ? -*trial.value : *trial.value});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.loss < b.loss; });
  return rows;
}

// A density over cells: Gaussian kernels for numbers, counts for choices; never quite zero.
std::vector<double> Density(const std::vector<double>& values, size_t choices) {
  const size_t cells = choices > 0 ? choices : kCells;
  std::vector<double> density(cells, 1.0 / static_cast<double>(cells));
  const double width = 0.5 * std::pow(static_cast<double>(values.size()), -0.2);
  for (const double value : values) {
    if (choices > 0) {
      const auto at = static_cast<size_t>(std::clamp(value, 0.0, static_cast<double>(choices - 1)));
      density[at] += 1;
      continue;
    }
    std::vector<double> kernel(cells);
    double sum = 0;
    for (size_t i = 0; i < cells; ++i) {
      const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(cells);
      const double z = (x - value) / (0.5 * width);
      kernel[i] = std::exp(-0.5 * z * z);
      sum += kernel[i];
    }
    for (size_t i = 0; i < cells && sum > 0; ++i) density[i] += kernel[i] / sum;
  }
  double total = 0;
  for (const double each : density) total += each;
  for (double& each : density) each /= total;
  return density;
}

double Divergence(const std::vector<double>& top, const std::vector<double>& all) {
  double sum = 0;
  for (size_t i = 0; i < top.size(); ++i) {
    const double ratio = top[i] / all[i] - 1;
    sum += all[i] * ratio * ratio;
  }
  return sum;
}

Result<tune::Space> SpaceOf(const StudyRecord& record) {
  ATHANOR_TRY(const auto json, ParseJson(record.spec.space));
  return tune::Space::Parse(json);
}

std::string Shown(double value) { return fmt::format("{:.4g}", value); }

void EdgeHints(const tune::Space& space, const Row& best, std::vector<StudyHint>& hints) {
  for (size_t i = 0; i < space.size(); ++i) {
    const auto& parameter = space.parameters()[i];
    const bool ranged = parameter.kind == tune::Kind::kFloat || parameter.kind == tune::Kind::kInt;
    if (!ranged || parameter.fixed() || !best.values[i]) continue;
    const double at = best.point[i];
    const bool whole = parameter.kind == tune::Kind::kInt;
    const double value = whole ? static_cast<double>(std::get<int64_t>(*best.values[i]))
                               : std::get<double>(*best.values[i]);
    const bool low = whole ? value <= parameter.low : at <= kEdge;
    const bool high = whole ? value >= parameter.high : at >= 1 - kEdge;
    if (!low && !high) continue;
    hints.push_back({fmt::format("the best trial has {} = {}, at the {} edge of its range", parameter.name,
                                 Shown(value), low ? "low" : "high"),
                     fmt::format("widen {} {} {}", parameter.name, low ? "below" : "above",
                                 Shown(low ? parameter.low : parameter.high))});
  }
}

}  // namespace

std::vector<Importance> ParameterImportance(const StudyRecord& record) {
  const auto space = SpaceOf(record);
  if (!space) return {};
  const auto rows = RowsOf(record, *space);
  if (rows.size() < kLeastTrials) return {};
  const size_t top = std::min(rows.size(), std::max<size_t>(5, rows.size() / 10));
  std::vector<Importance> out;
  double sum = 0;
  for (size_t i = 0; i < space->size(); ++i) {
    const auto& parameter = space->parameters()[i];
    Importance row{parameter.name, 0};
    if (!parameter.fixed()) {
      const size_t choices = parameter.kind == tune::Kind::kChoice ? parameter.choices.size() : 0;
      std::vector<double> all, best;
      for (size_t k = 0; k < rows.size(); ++k) {
        if (!rows[k].values[i]) continue;  // inactive
        all.push_back(rows[k].point[i]);
        if (k < top) best.push_back(rows[k].point[i]);
      }
      if (!best.empty()) row.share = Divergence(Density(best, choices), Density(all, choices));
    }
    sum += row.share;
    out.push_back(std::move(row));
  }
  for (auto& row : out) row.share = sum > 0 ? row.share / sum : 0;
  std::stable_sort(out.begin(), out.end(),
                   [](const Importance& a, const Importance& b) { return a.share > b.share; });
  return out;
}

std::vector<StudyHint> HintsFor(const StudyRecord& record) {
  std::vector<StudyHint> hints;
  const auto space = SpaceOf(record);
  if (!space) return hints;
  const auto rows = RowsOf(record, *space);
  const size_t failed = record.Count(TrialState::kFailed);
  if (failed >= 3 && failed * 2 > failed + rows.size()) {
    hints.push_back({fmt::format("{} of {} trials failed", failed, failed + rows.size()),
                     "ath tune show " + record.spec.name + " lists why; narrow the ranges they lie in"});
  }
  if (rows.size() < kLeastTrials) return hints;
  EdgeHints(*space, rows.front(), hints);
  const bool learns = record.spec.strategy != tune::Strategy::kRandom &&
                      record.spec.strategy != tune::Strategy::kGrid &&
                      record.spec.strategy != tune::Strategy::kSobol;
  if (rows.front().loss == rows.back().loss) {
    hints.push_back({"every trial has the same value: the parameters do not change " + record.spec.metric,
                     "does the script use them? ${name} in the command, or SM_HP_NAME"});
  } else if (learns && rows.size() >= kLeastForConverging && !Converged(record)) {
    hints.push_back({"not converged: the best still moves",
                     fmt::format("ath tune extend {} --max-trials {}", record.spec.name,
                                 2 * record.spec.max_trials)});
  }
  return hints;
}

}  // namespace athanor
