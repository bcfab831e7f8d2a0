// MLflow's door: the table of its calls, each at /api and at /ajax-api, and its probes.
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/body_feed.h"
#include "door/mlflow/artifacts.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/job_rights.h"
#include "door/mlflow/mlflow.h"
#include "steer/hub.h"

namespace athanor {
namespace {

// What clients take us for: it decides which calls they try.
constexpr char kSpokenVersion[] = "3.5.1";
constexpr char kServerInfo[] =
    R"({"store_type":"SqlStore","workspaces_enabled":false,"trace_archival_enabled":false,)"
    R"("multipart_uploads_enabled":false,"multipart_downloads_enabled":false})";

constexpr const char* kMethods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

// Clients that get this try an older way, or say what is missing; they would try again and
// again if it were our own kind of 404.
void Unknown(const Call& call) {
  call.responder.Send(
      MlflowError(MlflowFail("ENDPOINT_NOT_FOUND", "this server has no MLflow call " +
                                                       Printable(call.request.path.substr(0, 200)))
                      .value()));
}

// Answers when everything is stored. Of a change in parts it stores one, and lets others have their
// turn before the next.
void Keep(Mlflow& mlflow, const Call& call, Answer answer) {
  for (const auto& run : answer.batch.runs) mlflow.context.hub.Tell(run.id, News::kPoints);
  RunBatch batch = std::exchange(answer.batch, {});
  if (answer.more) {
    mlflow.context.run_writer.Write(std::move(batch), {});
    return mlflow.context.loop.Post([&mlflow, call, answer = std::move(answer)]() mutable {
      if (!answer.more(answer.batch)) answer.more = nullptr;
      Keep(mlflow, call, std::move(answer));
    });
  }
  mlflow.context.run_writer.Write(std::move(batch),
                                  [call, body = std::move(answer.body)](const Status& status) {
                                    if (!status)
                                      return call.responder.Send(MlflowError(status.error()));
                                    call.Json(200, body);
                                  });
}

void Finish(Mlflow& mlflow, const Call& call, Result<Answer> answer) {
  if (!answer) return call.responder.Send(MlflowError(answer.error()));
  if (answer->batch.empty() && !answer->more) return call.Json(200, std::move(answer->body));
  Keep(mlflow, call, std::move(*answer));
}

// On a thread that may wait. Such calls only read, so there is nothing to keep.
void ServeOnReader(const std::shared_ptr<Mlflow>& mlflow, MlflowHandler handler, const Call& call) {
  const bool taken = mlflow->context.readers.Submit([mlflow, handler, call] {
    auto fields = Fields::Of(call.request);
    auto answer =
        fields ? handler(*mlflow, *fields, call) : Result<Answer>(tl::unexpected(fields.error()));
    if (!answer) return call.responder.Send(MlflowError(answer.error()));
    if (!answer->source) return call.Json(200, std::move(answer->body));
    SendBody(mlflow->context, call, Response::Json(200, ""), std::move(answer->source),
             [&call](const Error& error) { call.responder.Send(MlflowError(error)); });
  });
  if (!taken) {
    call.responder.Send(MlflowError(Error{ErrorCode::kUnavailable, "the server is stopping"}));
  }
}

// Whether an answer must read a series first. A run that will be moved by the call is not left to
// another thread.
bool IsOfStaleRun(const Mlflow& mlflow, const Fields& fields) {
  const auto run = fields.Run();
  return run && !mlflow.named_experiment.contains(*run) && !mlflow.context.runs.IsFresh(*run);
}

void Serve(const std::shared_ptr<Mlflow>& mlflow, const MlflowCall& row, const Call& call) {
  if (row.plain != nullptr) {
    if (auto answer = row.plain(*mlflow, call)) return Finish(*mlflow, call, std::move(*answer));
  }
  if (!row.slow) {
    auto fields = Fields::Of(call.request);
    if (!fields) return call.responder.Send(MlflowError(fields.error()));
    if (auto may = CheckMayChange(*mlflow, call, row, *fields); !may) {
      return call.responder.Send(MlflowError(may.error()));
    }
    if (row.of_stale_run != nullptr && IsOfStaleRun(*mlflow, *fields)) {
      return ServeOnReader(mlflow, row.of_stale_run, call);
    }
    return Finish(*mlflow, call, row.handler(*mlflow, *fields, call));
  }
  ServeOnReader(mlflow, row.handler, call);
}

std::vector<std::span<const MlflowCall>> Tables() {
  return {ExperimentCalls(), RunCalls(),   MetricCalls(),     HistoryCalls(),
          ArtifactCalls(),   ModelCalls(), LoggedModelCalls()};
}

}  // namespace

std::vector<DoorRoute> MlflowRoutes(DoorContext& context) {
  auto mlflow = std::make_shared<Mlflow>(Mlflow{context, {}});
  std::vector<DoorRoute> routes = ArtifactRoutes(mlflow);
  for (const auto table : Tables()) {
    for (const MlflowCall& row : table) {
      for (const bool ajax : {false, true}) {
        routes.push_back({row.method, (ajax ? "/ajax-api" : "/api") + std::string(row.path),
                          (ajax ? "ajax.mlflow." : "mlflow.") + std::string(row.name),
                          [mlflow, &row](const Call& call) { Serve(mlflow, row, call); },
                          EndsWith(row.path, "{path...}")});
      }
    }
  }
  const auto text = [](const char* body) {
    return [body](const Call& call) { call.responder.Send(Response::Text(200, body)); };
  };
  routes.push_back({"GET", "/health", "mlflow.health", text("OK")});
  routes.push_back({"GET", "/version", "mlflow.version", text(kSpokenVersion)});
  for (const bool ajax : {false, true}) {
    const std::string base = ajax ? "/ajax-api" : "/api";
    const std::string door = ajax ? "ajax.mlflow." : "mlflow.";
    routes.push_back({"GET", base + "/3.0/mlflow/server-info", door + "server_info",
                      [](const Call& call) { call.Json(200, kServerInfo); }});
    for (const char* method : kMethods) {
      routes.push_back({method, base + "/{version}/mlflow/{call...}",
                        door + "unknown." + ToLower(method), Unknown});
    }
  }
  return routes;
}

std::vector<std::pair<std::string, Access>> MlflowPermissions() {
  std::vector<std::pair<std::string, Access>> rows = {
      {"mlflow.health", Access::kPublic},           {"mlflow.version", Access::kPublic},
      {"mlflow.server_info", Access::kPublic},      {"ajax.mlflow.server_info", Access::kPublic},
      {"mlflow.artifacts.download", Access::kRead}, {"mlflow.artifacts.upload", Access::kSubmit},
      {"mlflow.versions.artifact", Access::kRead},
  };
  for (const std::string door : {"mlflow.", "ajax.mlflow."}) {
    rows.push_back({door + "artifacts.put", Access::kSubmit});
    rows.push_back({door + "artifacts.get", Access::kRead});
    rows.push_back({door + "artifacts.delete", Access::kSubmit});
    rows.push_back({door + "artifacts.folder", Access::kRead});
    rows.push_back({door + "logged.artifact", Access::kRead});
    rows.push_back({door + "logged.artifacts", Access::kRead});
    for (const char* method : kMethods) {
      rows.push_back({door + "unknown." + ToLower(method), Access::kRead});
    }
    for (const auto table : Tables()) {
      for (const MlflowCall& row : table) rows.push_back({door + row.name, row.need});
    }
  }
  return rows;
}

}  // namespace athanor
