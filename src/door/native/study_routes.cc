// The native door's tuning jobs: create, look, stop, change, remove.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/study_views.h"
#include "door/native/views.h"
#include "door/queries.h"
#include "door/trial_jobs.h"
#include "job/friendly_name.h"
#include "study/studies.h"

namespace athanor {
namespace {

constexpr Millis kLongestWait{30'000};
constexpr size_t kLookedAt = 3;  // trials: they all run the same script

// When the jobs of its trials began, of those that did.
std::map<std::string, int64_t> BeganOf(const DoorContext& context, const StudyRecord& study) {
  std::vector<JobId> jobs;
  for (const auto& trial : study.trials) {
    if (const auto id = JobId::Parse(trial.job)) jobs.push_back(*id);
  }
  std::map<std::string, int64_t> began;
  context.runs.Peek(jobs, [&](const RunEntry& run) {
    if (const auto ms = BeganMs(run)) began[run.id.ToString()] = *ms;
  });
  return began;
}

// What the first trials that ended by themselves did not read of what is searched.
std::vector<UnreadParam> UnreadOf(const DoorContext& context, const StudyRecord& study) {
  size_t looked = 0;
  for (const auto& trial : study.trials) {
    const auto id = JobId::Parse(trial.job);
    if (trial.state != TrialState::kDone || !id) continue;
    if (looked++ == kLookedAt) break;
    const auto job = context.jobs.Find(*id);
    const auto params = ParseJson(trial.params);
    if (!job || !params) continue;
    auto unread = ReadUnread(context, *job);
    std::erase_if(unread, [&](const UnreadParam& param) { return !params->contains(param.name); });
    if (!unread.empty()) return unread;
  }
  return {};
}

Studies::Shown Answer(DoorContext& context, const Call& call, bool whole = true) {
  return [&context, call, whole](const Result<StudyRecord>& study) {
    if (!study) return call.Refuse(study.error());
    if (!whole) return call.Json(200, DumpJson(StudyRowView(*study)));
    OnReader(context, call, [&context, call, record = *study] {
      call.Json(200,
                DumpJson(StudyView(record, BeganOf(context, record), UnreadOf(context, record))));
    });
  };
}

void Create(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  if (!body->is_object() || !body->contains("spec")) {
    return call.Refuse(
        Error{ErrorCode::kInvalid, "no \"spec\" in the request", "see /api/v1/openapi.json"}.Id(
            "ATH-R0014"));
  }
  const auto key_at = body->find("key");
  const auto key = key_at != body->end() && key_at->is_string() ? key_at->get<std::string>() : "";
  if (key.size() > 200) {
    return call.Refuse(
        Error{ErrorCode::kInvalid, "a key has at most 200 bytes", "give a shorter one"}.Id(
            "ATH-R0014"));
  }
  auto spec = StudySpecFromJson((*body)["spec"]);
  if (!spec) return call.Refuse(spec.error());
  spec->origin = "native";
  if (spec->name.empty()) spec->name = FriendlyName(NewUlid());
  if (auto fit = CheckTrials(context, *spec, call.caller.user); !fit)
    return call.Refuse(fit.error());
  context.studies->Create(std::move(*spec), key, call.caller.user,
                          [call](const Result<Studies::Created>& made) {
                            if (!made) return call.Refuse(made.error());
                            Json out = {{"id", made->id.ToString()}, {"name", made->name}};
                            if (made->duplicate) out["duplicate"] = true;
                            call.Json(made->duplicate ? 200 : 201, DumpJson(out));
                          });
}

void ListStudies(DoorContext& context, const Call& call) {
  context.studies->List([call](const Result<std::vector<StudyRecord>>& all) {
    if (!all) return call.Refuse(all.error());
    Json rows = Json::array();
    for (const auto& record : *all) rows.push_back(StudyRowView(record));
    call.Json(200, DumpJson(Json{{"studies", std::move(rows)}}));
  });
}

void Show(DoorContext& context, const Call& call) {
  const auto after = std::strtoull(call.request.Query("after").value_or("0").c_str(), nullptr, 10);
  const auto wait = std::strtoll(call.request.Query("wait_ms").value_or("0").c_str(), nullptr, 10);
  context.studies->Show(call.captures["study"], after,
                        std::clamp(Millis(wait), Millis(0), kLongestWait), Answer(context, call));
}

void Stop(DoorContext& context, const Call& call) {
  context.studies->StopStudy(call.captures["study"], call.caller.user,
                             Answer(context, call, false));
}

void Extend(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  context.studies->Extend(call.captures["study"], std::move(*body), Answer(context, call, false));
}

void Add(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  if (!body->is_object() || !body->contains("params")) {
    return call.Refuse(
        Error{ErrorCode::kInvalid, "no \"params\" in the request", "see /api/v1/openapi.json"}.Id(
            "ATH-R0014"));
  }
  context.studies->Add(call.captures["study"], (*body)["params"], Answer(context, call, false));
}

void Remove(DoorContext& context, const Call& call) {
  context.studies->Remove(call.captures["study"], [call](const Result<StudyRecord>& study) {
    if (!study) return call.Refuse(study.error());
    call.Json(200, DumpJson(Json{{"removed", study->id.ToString()}}));
  });
}

}  // namespace

std::vector<DoorRoute> StudyRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("studies.create", bind(Create)), Native("studies.list", bind(ListStudies)),
      Native("studies.show", bind(Show)),     Native("studies.remove", bind(Remove)),
      Native("studies.stop", bind(Stop)),     Native("studies.extend", bind(Extend)),
      Native("studies.add", bind(Add)),
  };
}

}  // namespace athanor
