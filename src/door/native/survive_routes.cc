// The native door's interruptions: take a job's machine away, list its checkpoints, continue from
// one of them.
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/drafts.h"
#include "door/native/views.h"
#include "door/queries.h"
#include "job/codec.h"
#include "job/shown.h"
#include "link/job_folder.h"
#include "steer/admission.h"

namespace athanor {
namespace {

void Interrupt(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  auto grace = record->spec.limits.stop_grace;
  if (auto asked = call.request.Query("grace_ms")) {
    grace = Millis(std::strtoll(asked->c_str(), nullptr, 10));
  }
  if (!HoldsRoom(record->state)) {
    const auto& name = record->spec.name;
    return call.Refuse(
        Error{ErrorCode::kConflict, name + " holds no machine that could be taken away",
              (IsTerminal(record->state) ? "ath resume " : "ath why ") + ShellQuote(name)}
            .Why("it is " + std::string(ShownState(*record, context.clock.Wall())))
            .Id("ATH-R0009"));
  }
  InterruptAsked event{{"preempted", "its machine was taken away (by " + call.caller.user + ")",
                        "ath show " + ShellQuote(record->spec.name), ""},
                       call.caller.user,
                       grace};
  context.engine.Apply(record->id, event, [&context, call, id = record->id](const Status& status) {
    if (!status) return call.Refuse(status.error());
    auto now = FindJob(context, id.ToString());
    if (!now) return call.Refuse(now.error());
    call.Json(200, DumpJson(AcceptedView(context, *now)));
  });
}

void Checkpoints(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  // Manifests may be many: not on the control thread.
  OnReader(context, call, [&context, call, record = *record] {
    auto listing = JobFolder(context.info.home, record.id).Checkpoints(record.spec);
    if (!listing) return call.Refuse(listing.error());
    Json all = Json::array();
    for (const auto& checkpoint : listing->checkpoints) all.push_back(ToJson(checkpoint));
    Json damaged = Json::array();
    for (const auto& one : listing->damaged) {
      damaged.push_back({{"id", one.id}, {"why", one.error.what}});
    }
    Json out = {{"checkpoints", std::move(all)}, {"damaged", std::move(damaged)}};
    if (record.advice != IntervalAdvice{}) out["advice"] = ToJson(record.advice);
    call.Json(200, DumpJson(out));
  });
}

// The checkpoint that `step` names: an id, a step, or (empty) the newest.
Result<std::string> ChosenCheckpoint(const CheckpointStore::Listing& listing,
                                     const std::string& name, const std::string& wanted) {
  if (listing.checkpoints.empty()) {
    return Fail(Error{ErrorCode::kNotFound, name + " has no whole checkpoint",
                      "ath retry " + ShellQuote(name)}
                    .Why("none was kept")
                    .Id("ATH-R0010"));
  }
  if (wanted.empty()) return std::string();
  std::vector<std::string> steps;
  for (const auto& checkpoint : listing.checkpoints) {
    if (checkpoint.id == wanted) return checkpoint.id;
    if (checkpoint.step && std::to_string(*checkpoint.step) == wanted) return checkpoint.id;
    steps.push_back(checkpoint.step ? std::to_string(*checkpoint.step) : checkpoint.id);
  }
  return Fail(Error{ErrorCode::kNotFound, name + " has no checkpoint of step " + Printable(wanted),
                    "ath checkpoints " + ShellQuote(name)}
                  .Why("kept: " + Join(steps, ", "))
                  .Id("ATH-R0010"));
}

void GoOnFrom(DoorContext& context, const Call& call, const JobRecord& record,
              const std::string& checkpoint) {
  auto draft = context.admission.Draft(record.spec, call.request.Query("key").value_or(""),
                                       call.caller.user);
  if (draft) {
    draft->parent = record.id.ToString();
    draft->resume_job = record.id.ToString();
    draft->resume_from = checkpoint;
    draft->same_as.clear();  // it continues; it does not repeat
  }
  SubmitDraft(context, std::move(draft), call);
}

// A terminal state is final: continuing means a new job with the old one's checkpoint.
void Resume(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  if (!IsTerminal(record->state)) {
    const auto& name = record->spec.name;
    return call.Refuse(
        Error{ErrorCode::kConflict, name + " is not over",
              "ath interrupt " + ShellQuote(name) + "    goes on from its newest checkpoint"}
            .Why("it is " + std::string(ShownState(*record, context.clock.Wall())))
            .Id("ATH-R0005"));
  }
  OnReader(context, call, [&context, call, record = std::move(*record)] {
    auto listing = JobFolder(context.info.home, record.id).Checkpoints(record.spec);
    if (!listing) return call.Refuse(listing.error());
    auto chosen =
        ChosenCheckpoint(*listing, record.spec.name, call.request.Query("from").value_or(""));
    if (!chosen) return call.Refuse(chosen.error());
    context.loop.Post([&context, call, record, chosen = std::move(*chosen)] {
      GoOnFrom(context, call, record, chosen);
    });
  });
}

}  // namespace

std::vector<DoorRoute> SurviveRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("jobs.interrupt", bind(Interrupt)),
      Native("jobs.checkpoints", bind(Checkpoints)),
      Native("jobs.resume", bind(Resume)),
  };
}

}  // namespace athanor
