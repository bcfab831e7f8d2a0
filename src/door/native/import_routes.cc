// Runs without a job, natively: created, given points, ended. Used by `ath import`; MLflow clients
// have their own API.
#include <nlohmann/json.hpp>

#include "base/io/hash.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/queries.h"
#include "job/friendly_name.h"
#include "record/runs/run_writer.h"
#include "track/run_book.h"

namespace athanor {
namespace {

constexpr size_t kMostText = 1000;

Error Invalid(std::string what, std::string hint) {
  return Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}.Id("ATH-R0014");
}

Result<std::string> TextIn(const Json& body, const char* key) {
  if (!body.contains(key)) return std::string();
  if (!body[key].is_string() || body[key].get_ref<const std::string&>().size() > kMostText) {
    return Fail(Invalid(std::string("\"") + key + "\" must be a text of at most 1,000 bytes",
                        "see /api/v1/openapi.json"));
  }
  return body[key].get<std::string>();
}

Result<Json> Body(const Call& call) {
  ATHANOR_TRY(auto body, ParseJson(call.request.body));
  if (!body.is_object())
    return Fail(Invalid("the request is no object", "see /api/v1/openapi.json"));
  return body;
}

// One source is one run, however often it is imported.
JobId IdOf(const std::string& source) {
  const std::string hash = Sha256Hex("run of " + source);
  JobId id;
  for (size_t i = 0; i < id.value.bytes.size(); ++i) {
    id.value.bytes[i] = static_cast<uint8_t>(std::stoul(hash.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

Result<int64_t> ExperimentOf(DoorContext& context, const std::string& name, RunBatch& batch) {
  if (name.empty()) return 0;
  if (auto known = context.runs.ExperimentNamed(name)) return known->row.id;
  int64_t id = 0;
  ATHANOR_TRY(batch, context.runs.AddExperiment(name, "", {}, context.clock.Wall().ms, id));
  return id;
}

void Answer(const Call& call, JobId id, bool made) {
  const Json out = {{"id", id.ToString()}, {"run_id", id.value.ToHex()}, {"new", made}};
  call.Json(made ? 201 : 200, DumpJson(out));
}

Status Make(DoorContext& context, const Call& call) {
  ATHANOR_TRY(const auto body, Body(call));
  NewRun run;
  ATHANOR_TRY(run.name, TextIn(body, "name"));
  ATHANOR_TRY(const auto source, TextIn(body, "source"));
  ATHANOR_TRY(const auto experiment, TextIn(body, "experiment"));
  run.id = source.empty() ? JobId::New() : IdOf(source);
  if (context.runs.Has(run.id)) {
    ATHANOR_CHECK_OK(context.runs.CheckActive(run.id));
    Answer(call, run.id, false);
    return Ok();
  }
  if (run.name.empty()) run.name = FriendlyName(run.id.value);
  run.user = call.caller.user;
  run.started_ms = body.contains("started_ms") && body["started_ms"].is_number_integer()
                       ? body["started_ms"].get<int64_t>()
                       : context.clock.Wall().ms;
  if (!source.empty()) run.tags.emplace_back("athanor.source", source);
  RunBatch batch;
  ATHANOR_TRY(run.experiment, ExperimentOf(context, experiment, batch));
  ATHANOR_TRY(auto made, context.runs.AddRun(run));
  Append(batch, std::move(made));
  context.run_writer.Write(std::move(batch), [call, id = run.id](const Status& kept) {
    if (!kept.ok()) return call.Refuse(kept.error());
    Answer(call, id, true);
  });
  return Ok();
}

// The agents' series are theirs alone.
Result<JobId> OwnRun(DoorContext& context, const Call& call) {
  ATHANOR_TRY(const JobId id, ResolveRun(context, call.captures["run"]));
  ATHANOR_CHECK_OK(context.runs.CheckActive(id));
  if (context.jobs.Find(id)) {
    Error error = Invalid("this run is a job's: its points come from its script",
                          "ath metrics " + id.ToString());
    error.code = ErrorCode::kConflict;
    return Fail(std::move(error));
  }
  return id;
}

Status AddPoints(DoorContext& context, const Call& call) {
  ATHANOR_TRY(const JobId id, OwnRun(context, call));
  ATHANOR_TRY(const size_t stored, context.points.TakeFrames(id, call.request.body));
  call.Json(200, DumpJson(Json{{"stored", stored}}));
  return Ok();
}

Status Finish(DoorContext& context, const Call& call) {
  ATHANOR_TRY(const JobId id, OwnRun(context, call));
  ATHANOR_TRY(const auto body, Body(call));
  ATHANOR_TRY(const auto named, TextIn(body, "status"));
  RunUpdate update;
  update.status = named.empty() ? RunStatus::kFinished : RunStatusNamed(ToUpper(named));
  if (!update.status)
    return Fail(Invalid("no such status: " + Printable(named), "finished, failed or killed"));
  update.ended_ms = body.contains("ended_ms") && body["ended_ms"].is_number_integer()
                        ? body["ended_ms"].get<int64_t>()
                        : context.clock.Wall().ms;
  ATHANOR_TRY(auto batch, context.runs.UpdateRun(id, update));
  context.series.Close(id);
  context.run_writer.Write(std::move(batch), [call, id](const Status& kept) {
    if (!kept.ok()) return call.Refuse(kept.error());
    Answer(call, id, false);
  });
  return Ok();
}

}  // namespace

std::vector<DoorRoute> ImportRoutes(DoorContext& context) {
  const auto bind = [&context](Status (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) {
      if (auto status = handler(context, call); !status.ok()) call.Refuse(status.error());
    };
  };
  return {
      Native("runs.create", bind(Make)),
      Native("runs.add", bind(AddPoints)),
      Native("runs.finish", bind(Finish)),
  };
}

}  // namespace athanor
