#include "door/native/study_views.h"

#include <nlohmann/json.hpp>

#include "job/codec.h"
#include "study/decide.h"
#include "study/insight.h"

namespace athanor {
namespace {

Json ParamsOf(const TrialRecord& trial) {
  auto params = ParseJson(trial.params);
  return params ? std::move(*params) : Json::object();
}

std::string_view StateShown(const TrialRecord& trial) {
  if (!trial.stopping || IsOver(trial.state)) return NameOf(trial.state);
  return trial.cause.Is(CauseKind::kTrialPaused) ? "pausing" : "stopping";
}

Json TrialView(const StudyRecord& record, const TrialRecord& trial) {
  Json out = {{"trial", trial.number},
              {"name", record.spec.name + "-" + std::to_string(trial.number)},
              {"state", StateShown(trial)},
              {"shown_state", StateShown(trial)},
              {"params", ParamsOf(trial)}};
  if (!trial.job.empty()) out["job"] = trial.job;
  if (trial.value) out["value"] = *trial.value;
  if (trial.step) out["step"] = *trial.step;
  if (trial.own) out["own"] = true;
  if (trial.losses > 0) out["losses"] = trial.losses;
  if (trial.promotions > 0) out["promotions"] = trial.promotions;
  if (!trial.cause.kind.empty()) out["cause"] = ToJson(trial.cause);
  out["cost_micros"] = trial.cost_micros;
  out["held_ms"] = trial.held_ms;
  out["asked"] = Rfc3339(trial.asked);
  if (trial.ended.ms > 0) out["ended"] = Rfc3339(trial.ended);
  if (!trial.curve.empty()) {
    Json curve = Json::array();
    for (const auto& point : trial.curve) curve.push_back({point.step, point.value});
    out["curve"] = std::move(curve);
  }
  return out;
}

// The best value among done trials after each of them, in the order they ended.
Json BestSoFar(const StudyRecord& record) {
  std::vector<const TrialRecord*> done;
  for (const auto& trial : record.trials) {
    if (trial.state == TrialState::kDone && trial.value) done.push_back(&trial);
  }
  std::stable_sort(done.begin(), done.end(),
                   [](const auto* a, const auto* b) { return a->ended < b->ended; });
  Json out = Json::array();
  std::optional<double> best;
  for (const auto* trial : done) {
    if (!best || Better(record.spec, *trial->value, *best)) best = trial->value;
    out.push_back(*best);
  }
  return out;
}

}  // namespace

Json StudyRowView(const StudyRecord& record) {
  Json out = {{"id", record.id.ToString()},
              {"name", record.spec.name},
              {"state", NameOf(record.state)},
              {"user", record.user},
              {"metric", record.spec.metric},
              {"goal", record.spec.maximize ? "maximize" : "minimize"},
              {"strategy", NameOf(record.spec.strategy)},
              {"seed", record.spec.seed.value_or(0)},
              {"max_trials", record.spec.max_trials},
              {"parallel", record.spec.parallel}};
  Json counts = Json::object();
  for (const auto state : {TrialState::kAsked, TrialState::kRunning, TrialState::kPaused,
                           TrialState::kDone, TrialState::kFailed, TrialState::kStopped}) {
    counts[std::string(NameOf(state))] = record.Count(state);
  }
  out["counts"] = std::move(counts);
  out["imported"] = record.imported;
  out["cost_micros"] = record.CostMicros();
  out["created"] = Rfc3339(record.created);
  out["lines"] = record.lines;
  if (record.ended.ms > 0) out["ended"] = Rfc3339(record.ended);
  if (!record.cause.kind.empty()) out["cause"] = ToJson(record.cause);
  if (const auto* best = record.Best()) out["best"] = TrialView(record, *best);
  return out;
}

Json StudyView(const StudyRecord& record, const std::map<std::string, int64_t>& began,
               const std::vector<UnreadParam>& unread) {
  Json out = StudyRowView(record);
  out["spec"] = ToJson(record.spec);
  // The submitter's environment concerns only the job.
  out["spec"]["job"].erase("inherited");
  Json trials = Json::array();
  for (const auto& trial : record.trials) {
    Json view = TrialView(record, trial);
    const auto at = began.find(trial.job);
    if (at != began.end()) view["started"] = Rfc3339({at->second});
    if (trial.state == TrialState::kRunning && at == began.end()) view["shown_state"] = "queued";
    trials.push_back(std::move(view));
  }
  out["trials"] = std::move(trials);
  out["best_so_far"] = BestSoFar(record);
  Json importance = Json::array();
  for (const auto& row : ParameterImportance(record)) {
    importance.push_back({{"parameter", row.parameter}, {"share", row.share}});
  }
  out["importance"] = std::move(importance);
  Json hints = Json::array();
  if (!unread.empty()) {
    hints.push_back({{"text", UnreadText(unread) + ": the trials do not differ by " +
                                  (unread.size() == 1 ? "it" : "them")},
                     {"next", "ath tune -P, or args: flags in the job file, passes --" +
                                  unread.front().name + " VALUE to the script"},
                     {"kind", "unread"}});
  }
  for (const auto& hint : HintsFor(record)) {
    hints.push_back({{"text", hint.text}, {"next", hint.next}});
  }
  out["hints"] = std::move(hints);
  return out;
}

}  // namespace athanor
