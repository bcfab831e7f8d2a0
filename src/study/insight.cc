#include "study/insight.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "study/decide.h"
#include "track/importance.h"
#include "tune/space.h"

namespace athanor {
namespace {

constexpr size_t kLeastTrials = 8;
constexpr double kEdge = 0.02;  // of a range
constexpr size_t kLeastForConverging = 20;

struct TrialRow {
  tune::Assignment values;
  tune::Point point;
  double loss = 0;  // lower is better
};

// Finished trials that fit the space, the best first.
std::vector<TrialRow> RowsOf(const StudyRecord& record, const tune::Space& space) {
  std::vector<TrialRow> rows;
  for (const auto& trial : record.trials) {
    if (trial.state != TrialState::kDone || !trial.value) continue;
    auto params = ParseJson(trial.params);
    if (!params) continue;
    auto values = space.FromJson(*params, true);
    if (!values) continue;
    auto point = space.Encode(*values);
    rows.push_back({std::move(*values), std::move(point),
                    record.spec.maximize ? -*trial.value : *trial.value});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TrialRow& a, const TrialRow& b) { return a.loss < b.loss; });
  return rows;
}

Result<tune::Space> SpaceOf(const StudyRecord& record) {
  ATHANOR_TRY(const auto json, ParseJson(record.spec.space));
  return tune::Space::Parse(json);
}

std::string Rounded(double value) { return fmt::format("{:.4g}", value); }

// The command that searches beyond the edge: ten times as far on a log scale, otherwise half as far
// again.
std::string Widened(const std::string& study, const tune::Parameter& parameter, bool below) {
  double low = parameter.low, high = parameter.high;
  const bool whole = parameter.kind == tune::Kind::kInt;
  const double more = whole ? std::ceil((high - low) / 2) : (high - low) / 2;
  if (parameter.scale == tune::Scale::kLog) {
    below ? low = whole ? std::max(1.0, std::floor(low / 10)) : low / 10 : high *= 10;
  } else {
    below ? low -= more : high += more;
  }
  return fmt::format(
      "ath tune extend {} --range {}", ShellQuote(study),
      ShellQuote(fmt::format("{}={}..{}", parameter.name, Rounded(low), Rounded(high))));
}

void EdgeHints(const std::string& study, const tune::Space& space, const TrialRow& best,
               std::vector<StudyHint>& hints) {
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
    hints.push_back({fmt::format("the best trial has {} = {}, at the {} edge of its range",
                                 parameter.name, Rounded(value), low ? "low" : "high"),
                     Widened(study, parameter, low)});
  }
}

}  // namespace

std::vector<Importance> ParameterImportance(const StudyRecord& record) {
  const auto space = SpaceOf(record);
  if (!space) return {};
  const auto rows = RowsOf(record, *space);
  if (rows.size() < kLeastTrials) return {};
  std::vector<double> losses;
  for (const auto& row : rows) losses.push_back(row.loss);
  // In the unit cube, where a logarithmic range is even already. Shifted to 1..2, because values
  // from nearly 0 to 1 would be taken for logarithmic once more. Choices, which have no order, are
  // words.
  std::vector<ParamColumn> columns;
  for (size_t i = 0; i < space->size(); ++i) {
    const auto& parameter = space->parameters()[i];
    const bool choice = parameter.kind == tune::Kind::kChoice;
    ParamColumn column{parameter.name, {}};
    for (const auto& row : rows) {
      if (!row.values[i]) {
        column.values.emplace_back();  // inactive
      } else {
        column.values.push_back(choice ? fmt::format("choice {}", row.point[i])
                                       : fmt::format("{}", 1 + row.point[i]));
      }
    }
    columns.push_back(std::move(column));
  }
  std::vector<Importance> out;
  for (auto& weight : ParamWeights(losses, columns)) {
    out.push_back({std::move(weight.name), weight.importance});
  }
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
                     "ath tune show " + ShellQuote(record.spec.name) +
                         " lists why; narrow the ranges they lie in"});
  }
  if (rows.size() < kLeastTrials) return hints;
  EdgeHints(record.spec.name, *space, rows.front(), hints);
  const bool learns = record.spec.strategy != tune::Strategy::kRandom &&
                      record.spec.strategy != tune::Strategy::kGrid &&
                      record.spec.strategy != tune::Strategy::kSobol;
  if (rows.front().loss == rows.back().loss) {
    hints.push_back(
        {"every trial has the same value: the parameters do not change " + record.spec.metric,
         "does the script use them? ${name} in the command, or SM_HP_NAME"});
  } else if (learns && rows.size() >= kLeastForConverging && !Converged(record)) {
    hints.push_back({"not converged: the best still moves",
                     fmt::format("ath tune extend {} --max-trials {}", ShellQuote(record.spec.name),
                                 2 * record.spec.max_trials)});
  }
  return hints;
}

}  // namespace athanor
