#include "study/warm_start.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tune/space.h"

namespace athanor {
namespace {

constexpr size_t kTransferred = 3;

std::vector<const TrialRecord*> BestFirst(const StudyRecord& parent) {
  std::vector<const TrialRecord*> trials;
  for (const auto& trial : parent.trials) {
    if (trial.state == TrialState::kDone && trial.value) trials.push_back(&trial);
  }
  std::stable_sort(trials.begin(), trials.end(), [&](const auto* a, const auto* b) {
    return Better(parent.spec, *a->value, *b->value);
  });
  return trials;
}

}  // namespace

Result<std::vector<StudyEvent>> WarmStart(const StudySpec& spec,
                                          const std::vector<StudyRecord>& parents, WallTime now) {
  std::vector<StudyEvent> events;
  if (parents.empty()) return events;
  ATHANOR_TRY(const auto json, ParseJson(spec.space));
  ATHANOR_TRY(const auto space, tune::Space::Parse(json));
  const auto of = [&](const TrialRecord& trial) -> std::optional<tune::Assignment> {
    auto params = ParseJson(trial.params);
    if (!params) return std::nullopt;
    auto values = space.FromJson(*params, true);
    if (!values) return std::nullopt;
    return std::move(*values);
  };
  for (const auto& parent : parents) {
    if (spec.transfer) continue;
    if (parent.spec.metric != spec.metric || parent.spec.maximize != spec.maximize) {
      return Fail(Error{ErrorCode::kInvalid,
                        "the study " + parent.spec.name + " has another objective",
                        "transfer: true    takes its best parameters instead of its values"}
                      .Why(parent.spec.metric + " there, " + spec.metric + " here")
                      .Id("ATH-T0013"));
    }
    for (const auto& trial : parent.trials) {
      const auto values =
          trial.state == TrialState::kDone && trial.value ? of(trial) : std::nullopt;
      if (!values) continue;
      StudyEvent event;
      event.kind = StudyEvent::Kind::kImported;
      event.at = now;
      event.params = DumpJson(space.ToJson(*values));
      event.value = trial.value;
      events.push_back(std::move(event));
    }
  }
  if (!spec.transfer) return events;
  // One of each parent in turn, the best first, because values of different objectives cannot be
  // compared.
  std::vector<std::string> tried;
  for (size_t rank = 0; rank < kTransferred && tried.size() < kTransferred; ++rank) {
    for (const auto& parent : parents) {
      const auto best = BestFirst(parent);
      const auto values = rank < best.size() ? of(*best[rank]) : std::nullopt;
      if (!values || tried.size() >= kTransferred) continue;
      // Through a point of the cube, which moves it into the new ranges.
      auto params = DumpJson(space.ToJson(space.Decode(space.Encode(*values))));
      if (std::find(tried.begin(), tried.end(), params) != tried.end()) continue;
      StudyEvent event;
      event.kind = StudyEvent::Kind::kAsked;
      event.at = now;
      event.trial = static_cast<int64_t>(tried.size()) + 1;
      event.search_id = static_cast<int64_t>(tried.size());
      event.params = params;
      event.own = true;
      tried.push_back(std::move(params));
      events.push_back(std::move(event));
    }
  }
  return events;
}

}  // namespace athanor
