// The native door's jobs: submit, look, stop, retry, remove.
#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/drafts.h"
#include "door/native/job_choice.h"
#include "door/native/points_body.h"
#include "door/native/views.h"
#include "door/queries.h"
#include "job/codec.h"
#include "job/shown.h"
#include "steer/admission.h"
#include "steer/hub.h"
#include "steer/removal.h"

namespace athanor {
namespace {

constexpr size_t kMostTrends = 200;  // sparklines of one answer
constexpr size_t kMostListed = 10'000;

void Submit(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  if (!body->is_object() || !body->contains("spec")) {
    return call.Refuse(
        Error{ErrorCode::kInvalid, "no \"spec\" in the request", "see /api/v1/openapi.json"}.Id(
            "ATH-R0014"));
  }
  std::string key = body->contains("key") && (*body)["key"].is_string()
                        ? (*body)["key"].get<std::string>()
                        : std::string();
  if (key.size() > 200) {
    return call.Refuse(
        Error{ErrorCode::kInvalid, "a key has at most 200 bytes", "give a shorter one"}.Id(
            "ATH-R0014"));
  }
  auto spec = SpecFromCaller((*body)["spec"]);
  if (!spec) return call.Refuse(spec.error());
  SubmitDraft(context, context.admission.Draft(std::move(*spec), key, call.caller.user), call);
}

// A job from the text of a job file; with "check", only what it would be.
void SubmitText(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  const auto text = [&body](const char* name) {
    return body->is_object() && body->contains(name) && (*body)[name].is_string()
               ? (*body)[name].get<std::string>()
               : std::string();
  };
  const auto key = text("key");
  if (!body->is_object() || !body->contains("text") || key.size() > 200) {
    return call.Refuse(Error{ErrorCode::kInvalid,
                             "no \"text\" in the request, or a key of more than 200 bytes",
                             "see /api/v1/openapi.json"}
                           .Id("ATH-R0014"));
  }
  std::optional<JobRecord> like;
  if (const auto name = text("source_of"); !name.empty()) {
    auto record = FindJob(context, name);
    if (!record) return call.Refuse(record.error());
    like = std::move(*record);
  }
  auto spec = SpecFromText(text("text"), like ? &*like : nullptr);
  if (!spec) return call.Refuse(spec.error());
  auto draft = context.admission.Draft(std::move(*spec), key, call.caller.user);
  if (!draft || body->value("check", Json(false)) == Json(false))
    return SubmitDraft(context, std::move(draft), call);
  Json view = ToJson(draft->spec);
  view.erase("inherited");
  call.Json(200, DumpJson(Json{{"spec", std::move(view)}}));
}

// What a list is asked for.
struct Listing {
  JobQuery query;
  JobChoice choice;
  bool count = false;  // how many there are, too

  // The store alone does not know which.
  bool picks() const { return !choice.views.empty() || choice.looks_closer(); }
};

Result<Listing> ListingOf(const Request& request) {
  Listing listing;
  ATHANOR_TRY(const auto limit, WholeNumber(request, "limit"));
  if (limit) listing.query.limit = std::clamp<uint64_t>(*limit, 1, kMostListed);
  ATHANOR_TRY(listing.choice, ChoiceIn(request));
  listing.query.states = listing.choice.states;
  listing.query.experiment = listing.choice.experiment;
  listing.query.live_only = request.Query("live").value_or("") == "true";
  listing.count = request.Query("count").value_or("") == "true";
  if (auto before = request.Query("before")) listing.query.before = JobId::Parse(*before);
  if (request.Query("ended").value_or("") != "true") return listing;
  // For who removes them: what is not over cannot be.
  auto& states = listing.query.states;
  if (!listing.choice.views.empty() || !std::ranges::all_of(states, IsTerminal)) {
    return Fail(Error{ErrorCode::kInvalid, "a job in that state has not ended",
                      "use one or more of Completed, Failed, Stopped"}
                    .Id("ATH-R0011"));
  }
  if (states.empty()) states = {JobState::kCompleted, JobState::kFailed, JobState::kStopped};
  return listing;
}

// A view belongs to a job that holds room: all of those are read...
JobQuery AllThatMayShow(JobQuery query, bool views) {
  for (const JobState state : kAllStates) {
    if (views && HoldsRoom(state)) query.states.push_back(state);
  }
  query.limit = SIZE_MAX - 1;
  query.before.reset();
  return query;
}

// ...and filtered by how they look now.
void KeepShown(std::vector<ListedJob>& rows, const Listing& listing) {
  std::erase_if(rows, [&](const ListedJob& row) {
    const auto& states = listing.query.states;
    const auto& views = listing.choice.views;
    return std::ranges::find(states, row.job.state) == states.end() &&
           std::ranges::find(views, row.shown) == views.end();
  });
}

// Answers with the rows that fit, and says so when there are more.
void SendRows(const Call& call, std::vector<ListedJob> rows, const Listing& listing,
              std::optional<uint64_t> matched) {
  if (listing.picks()) {
    matched = rows.size();
    if (const auto before = listing.query.before) {
      std::erase_if(rows, [&](const ListedJob& row) { return !(row.job.id < *before); });
    }
  }
  const bool more = rows.size() > listing.query.limit;
  if (more) rows.resize(listing.query.limit);
  std::string body = ListView(rows);
  body.pop_back();  // "}"
  if (more) body += ",\"next\":\"" + rows.back().job.id.ToString() + "\"";
  if (listing.count && matched) body += ",\"matched\":" + std::to_string(*matched);
  call.Json(200, body + "}");
}

void ListJobs(DoorContext& context, const Call& call) {
  auto asked = ListingOf(call.request);
  if (!asked) return call.Refuse(asked.error());
  auto wanted =
      asked->picks() ? AllThatMayShow(asked->query, !asked->choice.views.empty()) : asked->query;
  ++wanted.limit;  // whether there are more
  // A hundred thousand rows may be asked for: only what memory knows better is put in on the loop.
  OnReader(context, call, [&context, call, listing = std::move(*asked), wanted] {
    auto found = context.jobs.List(wanted);
    if (!found) return call.Refuse(found.error());
    std::optional<uint64_t> matched;
    if (listing.choice.looks_closer()) KeepChosen(context, listing.choice, *found);
    if (listing.count && !listing.picks()) {
      const auto counted = context.jobs.CountOf(listing.query);
      if (!counted) return call.Refuse(counted.error());
      matched = *counted;
    }
    context.loop.Post([&context, call, listing, matched, jobs = std::move(*found)]() mutable {
      auto rows = AsShown(context, std::move(jobs));
      if (!listing.choice.views.empty()) KeepShown(rows, listing);
      OnReader(context, call, [call, listing, matched, rows = std::move(rows)]() mutable {
        SendRows(call, std::move(rows), listing, matched);
      });
    });
  });
}

void Show(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  std::optional<LiveStats> stats;
  if (const auto* known = context.hub.FindStats(record->id)) stats = *known;
  OnReader(context, call, [&context, call, record = std::move(*record), stats = std::move(stats)] {
    call.Json(200, DumpJson(JobView(context, record, stats ? &*stats : nullptr,
                                    ReadNumbers(context, record))));
  });
}

void Events(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  uint64_t after = std::strtoull(call.request.Query("after").value_or("0").c_str(), nullptr, 10);
  OnReader(context, call, [&context, call, id = record->id, after] {
    auto events = context.jobs.Events(id, after, 10'000);
    if (!events) return call.Refuse(events.error());
    Json all = Json::array();
    for (const auto& event : *events) all.push_back(ToJson(event));
    Json out = Json::object();
    out["events"] = std::move(all);
    call.Json(200, DumpJson(out));
  });
}

void Stop(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  if (IsTerminal(record->state)) return call.Json(200, DumpJson(AcceptedView(context, *record)));
  auto grace = record->spec.limits.stop_grace;
  if (auto asked = call.request.Query("grace_ms")) {
    grace = Millis(std::strtoll(asked->c_str(), nullptr, 10));
  }
  StopAsked event{{"user_stop", "stopped by " + call.caller.user,
                   "ath retry " + ShellQuote(record->spec.name), ""},
                  call.caller.user,
                  grace};
  context.engine.Apply(record->id, event, [&context, call, id = record->id](const Status& status) {
    auto now = FindJob(context, id.ToString());
    if (!status && !(now && IsTerminal(now->state))) return call.Refuse(status.error());
    if (!now) return call.Refuse(now.error());
    call.Json(200, DumpJson(AcceptedView(context, *now)));
  });
}

// A retry is a new job with the spec of an old one and what the caller changes.
void Retry(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  if (!IsTerminal(record->state)) {
    return call.Refuse(Error{ErrorCode::kConflict, record->spec.name + " is not over",
                             "ath stop " + ShellQuote(record->spec.name)}
                           .Why("it is " + std::string(ShownState(*record, context.clock.Wall())))
                           .Id("ATH-R0005"));
  }
  auto spec = record->spec;
  std::string key;
  if (!call.request.body.empty()) {
    auto body = ParseJson(call.request.body);
    if (!body) return call.Refuse(body.error());
    if (body->contains("key") && (*body)["key"].is_string())
      key = (*body)["key"].get<std::string>();
    if (body->contains("spec")) {
      auto changed = SpecFromCaller((*body)["spec"]);
      if (!changed) return call.Refuse(changed.error());
      spec = std::move(*changed);
    }
  }
  auto draft = context.admission.Draft(std::move(spec), key, call.caller.user);
  if (draft) draft->parent = record->id.ToString();
  SubmitDraft(context, std::move(draft), call);
}

void Remove(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  context.removal.RemoveJob(record->id, [call, id = record->id](const Status& status) {
    if (!status) return call.Refuse(status.error());
    call.Json(200, "{\"removed\":\"" + id.ToString() + "\"}");
  });
}

void Metrics(DoorContext& context, const Call& call) {
  auto run = ResolveRun(context, call.captures["job"]);
  if (!run) return call.Refuse(run.error());
  auto resumes = context.runs.ResumesOf(*run);
  auto summaries = context.series.Summaries(*run, resumes);
  if (!summaries) return call.Refuse(summaries.error());
  Json out = Json::object();
  out["metrics"] = MetricsView(*summaries);
  const auto trend = std::strtoull(call.request.Query("trend").value_or("0").c_str(), nullptr, 10);
  for (size_t i = 0; trend > 0 && i < std::min(summaries->size(), kMostTrends); ++i) {
    SampleQuery query;
    query.width = std::min<size_t>(trend, 1000);
    auto points = context.series.Sample(*run, (*summaries)[i].name, query, resumes);
    if (!points) continue;
    Json values = Json::array();
    for (const auto& point : *points) values.push_back(point.value);
    out["metrics"][i]["trend"] = std::move(values);
  }
  call.Json(200, DumpJson(out));
}

void Points(DoorContext& context, const Call& call) {
  auto run = ResolveRun(context, call.captures["job"]);
  if (!run) return call.Refuse(run.error());
  bool abandoned = call.request.Query("abandoned").value_or("") == "true";
  // A name that is not a path, such as "../x", comes as a parameter.
  const std::string name = call.request.Query("name").value_or(call.captures["name"]);
  SendPoints(context, call, *run, name, abandoned);
}

}  // namespace

std::vector<DoorRoute> JobRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("jobs.submit", bind(Submit)),   Native("jobs.text", bind(SubmitText)),
      Native("jobs.list", bind(ListJobs)),   Native("jobs.show", bind(Show)),
      Native("jobs.remove", bind(Remove)),   Native("jobs.events", bind(Events)),
      Native("jobs.stop", bind(Stop)),       Native("jobs.retry", bind(Retry)),
      Native("jobs.metrics", bind(Metrics)), Native("jobs.points", bind(Points)),
  };
}

}  // namespace athanor
