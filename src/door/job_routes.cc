// The native door's jobs: submit, look, stop, retry, remove.
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "door/doors.h"
#include "door/hub.h"
#include "door/names.h"
#include "door/views.h"
#include "job/codec.h"
#include "place/need.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

constexpr uint64_t kReserveBytes = 64ull << 20;

Status CheckSecrets(const DoorContext& context, const JobSpec& spec) {
  auto check = [&](const std::string& name) -> Status {
    if (context.secrets.Has(name)) return Ok();
    Error error;
    error.code = ErrorCode::kInvalid;
    error.what = "secret \"" + name + "\" is not set";
    error.why = "the job names it and the built-in store does not have it";
    error.hint = "ath secret set " + name;
    error.id = "ATH-S0110";
    return Fail(std::move(error));
  };
  for (const auto& secret : spec.secrets) {
    if (secret.source == "store" && !secret.optional) ATHANOR_CHECK_OK(check(secret.name));
  }
  if (!spec.environment.index_secret.empty()) {
    ATHANOR_CHECK_OK(check(spec.environment.index_secret));
  }
  return Ok();
}

Status CheckSpace(const DoorContext& context) {
  auto free = FreeBytes(context.info.home);
  if (!free || *free >= kReserveBytes) return Ok();
  Error error;
  error.code = ErrorCode::kExhausted;
  error.what = "the disk is too full to accept a job";
  error.why = HumanBytes(*free) + " free where " + context.info.home + " lies, " +
              HumanBytes(kReserveBytes) + " needed";
  error.hint = "free some space, or remove old jobs: ath rm JOB";
  error.id = "ATH-S0202";
  return Fail(std::move(error));
}

// A spec from outside becomes a draft: everything checkable is checked here, before
// anything is stored.
Result<JobRecord> Draft(const DoorContext& context, JobSpec spec, const std::string& key,
                        const std::string& user) {
  ATHANOR_CHECK_OK(CheckSpec(spec));
  ATHANOR_CHECK_OK(CheckSecrets(context, spec));
  ATHANOR_CHECK_OK(CheckSpace(context));
  auto resolved = Resolve(spec.resources, context.catalogue, context.inventory,
                          context.info.simulate);
  // An unknown type is a mistake in the request, not a missing thing of the server's.
  if (!resolved) resolved.error().code = ErrorCode::kInvalid;
  ATHANOR_TRY(auto need, std::move(resolved));
  if (!spec.source.bundle.empty() && !context.blobs.Has(spec.source.bundle)) {
    Error error;
    error.code = ErrorCode::kInvalid;
    error.what = "the source bundle was not uploaded";
    error.why = "no blob " + Printable(spec.source.bundle);
    error.hint = "PUT /api/v1/blobs/{sha256} for what POST /api/v1/blobs/missing names";
    error.id = "ATH-S0203";
    return Fail(std::move(error));
  }
  JobRecord draft;
  draft.id = JobId::New();
  draft.key = key.empty() ? draft.id.ToString() : key;
  draft.spec_hash = SpecHash(spec);
  draft.user = user;
  draft.created = context.clock.Wall();
  draft.simulated = need.simulated;
  if (!spec.resources.type.empty()) {
    ATHANOR_TRY(auto type, context.catalogue.Find(spec.resources.type));
    draft.price = PriceOfType(type);
  } else {
    draft.price = PriceOfAmounts(need.cpu_millis, need.memory_bytes, need.gpus, context.info.rates);
  }
  auto same = context.jobs.FindSameRun(SameRunHash(spec));
  if (same && *same) draft.same_as = (*same)->ToString();
  if (spec.name.empty()) spec.name = FriendlyName(draft.id.value);
  draft.spec = std::move(spec);
  return draft;
}

void Enter(DoorContext& context, Result<JobRecord> draft, const Call& call) {
  if (!draft) return call.Refuse(draft.error());
  Json reply = AcceptedView(*draft);
  context.engine.Submit(std::move(*draft), [&context, call, reply](
                                               Result<Engine::Accepted> accepted) mutable {
    if (!accepted) {
      bool other_payload = accepted.error().id == "ATH-S0201";
      return call.responder.Send(other_payload ? ErrorResponse(422, accepted.error())
                                               : ErrorResponse(accepted.error()));
    }
    if (accepted->duplicate) {
      auto earlier = FindJob(context, accepted->id.ToString());
      if (earlier) reply = AcceptedView(*earlier);
      reply["duplicate"] = true;
    }
    call.Json(accepted->duplicate ? 200 : 201, DumpJson(reply));
  });
}

void Submit(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  if (!body->is_object() || !body->contains("spec")) {
    return call.Refuse(Error{ErrorCode::kInvalid, "no \"spec\" in the request", "see /api/v1/openapi.json", "", "", ""});
  }
  std::string key = body->contains("key") && (*body)["key"].is_string()
                        ? (*body)["key"].get<std::string>()
                        : std::string();
  if (key.size() > 200) {
    return call.Refuse(Error{ErrorCode::kInvalid, "a key has at most 200 bytes", "", "", "", ""});
  }
  auto spec = SpecFromCaller((*body)["spec"]);
  if (!spec) return call.Refuse(spec.error());
  Enter(context, Draft(context, std::move(*spec), key, call.caller.user), call);
}

void List(DoorContext& context, const Call& call) {
  JobQuery query;
  const auto& request = call.request;
  if (auto limit = request.Query("limit")) {
    query.limit = std::min<size_t>(std::strtoull(limit->c_str(), nullptr, 10), 100'000);
  }
  query.live_only = request.Query("live").value_or("") == "true";
  query.experiment = request.Query("experiment").value_or("");
  if (auto state = request.Query("state")) {
    for (const auto& name : Split(*state, ',')) {
      auto known = StateNamed(name);
      if (!known) {
        return call.Refuse(Error{ErrorCode::kInvalid, "no such state: " + Printable(name),
                                 "Queued, Placing, Preparing, Running, Uploading, Interrupted, "
                                 "Completed, Failed, Stopped", "", "", ""});
      }
      query.states.push_back(*known);
    }
  }
  if (auto before = request.Query("before")) query.before = JobId::Parse(*before);
  auto jobs = context.jobs.List(query);
  if (!jobs) return call.Refuse(jobs.error());
  call.Json(200, ListView(context, *jobs));
}

void Show(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  call.Json(200, DumpJson(JobView(context, *record)));
}

void Events(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  uint64_t after = std::strtoull(call.request.Query("after").value_or("0").c_str(), nullptr, 10);
  auto events = context.jobs.Events(record->id, after, 10'000);
  if (!events) return call.Refuse(events.error());
  Json all = Json::array();
  for (const auto& event : *events) all.push_back(ToJson(event));
  Json out = Json::object();
  out["events"] = std::move(all);
  call.Json(200, DumpJson(out));
}

void Stop(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  if (IsTerminal(record->state)) return call.Json(200, DumpJson(AcceptedView(*record)));
  auto grace = record->spec.limits.stop_grace;
  if (auto asked = call.request.Query("grace_ms")) {
    grace = Millis(std::strtoll(asked->c_str(), nullptr, 10));
  }
  StopAsked event{{"user_stop", "stopped by " + call.caller.user, "ath retry " + record->spec.name, ""},
                  call.caller.user, grace};
  context.engine.Apply(record->id, event, [&context, call, id = record->id](const Status& status) {
    auto now = FindJob(context, id.ToString());
    if (!status && !(now && IsTerminal(now->state))) return call.Refuse(status.error());
    if (!now) return call.Refuse(now.error());
    call.Json(200, DumpJson(AcceptedView(*now)));
  });
}

// A retry is a new job with the spec of an old one and what the caller changes.
void Retry(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  if (!IsTerminal(record->state)) {
    return call.Refuse(Error{ErrorCode::kConflict, record->spec.name + " is not over",
                             "ath stop " + record->spec.name, "", "", ""});
  }
  auto spec = record->spec;
  std::string key;
  if (!call.request.body.empty()) {
    auto body = ParseJson(call.request.body);
    if (!body) return call.Refuse(body.error());
    if (body->contains("key") && (*body)["key"].is_string()) key = (*body)["key"].get<std::string>();
    if (body->contains("spec")) {
      auto changed = SpecFromCaller((*body)["spec"]);
      if (!changed) return call.Refuse(changed.error());
      spec = std::move(*changed);
    }
  }
  auto draft = Draft(context, std::move(spec), key, call.caller.user);
  if (draft) draft->parent = record->id.ToString();
  Enter(context, std::move(draft), call);
}

void Remove(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  context.engine.Forget(record->id, [&context, call, id = record->id](const Status& status) {
    if (!status) return call.Refuse(status.error());
    auto logs = context.logs.Remove(id);
    auto series = context.series.Remove(id);
    if (!logs) return call.Refuse(logs.error());
    if (!series) return call.Refuse(series.error());
    // Checkpoints may be many and large: not on the control thread.
    auto dir = JoinPath(JoinPath(context.info.home, "jobs"), id.ToString());
    bool taken = context.readers.Submit([call, id, dir] {
      auto removed = RemoveTree(dir);
      if (!removed && Exists(dir)) return call.Refuse(removed.error());
      call.Json(200, "{\"removed\":\"" + id.ToString() + "\"}");
    });
    if (!taken) call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping", "", "", "", ""});
  });
}

void Metrics(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  auto summaries = context.series.Summaries(record->id);
  if (!summaries) return call.Refuse(summaries.error());
  Json out = Json::object();
  out["metrics"] = MetricsView(*summaries);
  call.Json(200, DumpJson(out));
}

void Points(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  bool abandoned = call.request.Query("abandoned").value_or("") == "true";
  auto points = context.series.Read(record->id, call.captures["name"], abandoned);
  if (!points) return call.Refuse(points.error());
  Response response;
  response.headers.Add("Content-Type", "application/x-ndjson");
  response.body = PointsView(call.captures["name"], *points);
  call.responder.Send(std::move(response));
}

}  // namespace

std::vector<DoorRoute> JobRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      {"POST", "/api/v1/jobs", "jobs.submit", bind(Submit)},
      {"GET", "/api/v1/jobs", "jobs.list", bind(List)},
      {"GET", "/api/v1/jobs/{job}", "jobs.show", bind(Show)},
      {"DELETE", "/api/v1/jobs/{job}", "jobs.remove", bind(Remove)},
      {"GET", "/api/v1/jobs/{job}/events", "jobs.events", bind(Events)},
      {"POST", "/api/v1/jobs/{job}/stop", "jobs.stop", bind(Stop)},
      {"POST", "/api/v1/jobs/{job}/retry", "jobs.retry", bind(Retry)},
      {"GET", "/api/v1/jobs/{job}/metrics", "jobs.metrics", bind(Metrics)},
      {"GET", "/api/v1/jobs/{job}/metrics/{name...}", "jobs.points", bind(Points)},
  };
}

}  // namespace athanor
