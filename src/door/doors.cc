#include "door/doors.h"

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/io/files.h"
#include "base/io/unnamed_file.h"
#include "base/text/text.h"
#include "door/agents/file_routes.h"
#include "door/mlflow/mlflow.h"
#include "door/native/disk_routes.h"
#include "door/native/route_table.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "net/http/content_coding.h"

namespace athanor {
namespace {

constexpr uint64_t kMostReport = 64ull << 20;
constexpr uint64_t kMostBlob = 64ull << 30;
constexpr uint64_t kMostSpec = 4ull << 20;
constexpr uint64_t kMostCall = 32ull << 20;  // a data set's profile may have 16 MB

// What may be large is never held in memory: without a place for it, it is not taken.
void SpoolTo(BodyPolicy& policy, const std::string& dir) {
  auto file = UnnamedFile(dir);
  if (file) {
    policy.spool = std::move(*file);
    return;
  }
  policy.refuse =
      ErrorResponse(Error{ErrorCode::kExhausted, "there is no place for what is sent", "ath check"}
                        .Why(file.error().what)
                        .Id("ATH-S0206"));
}

// Compresses what is sent where the client asks for it, and sends nothing that it has. What takes
// long is done by a reader: the loop has others to answer.
void Spare(DoorContext& context, const Request& request, const Responder& responder) {
  constexpr size_t kSmall = 32 << 10;
  auto wishes = WishesOf(request);
  if (!wishes.any()) return;
  responder.SetFinish([&context, wishes = std::move(wishes)](Response response,
                                                             std::function<void(Response)> send) {
    if (!Fits(wishes, response)) return send(std::move(response));
    if (response.body.size() <= kSmall || !context.loop.InLoopThread()) {
      Fit(wishes, response);
      return send(std::move(response));
    }
    auto shared = std::make_shared<Response>(std::move(response));
    const bool taken = context.readers.Submit([wishes, shared, send] {
      Fit(wishes, *shared);
      send(std::move(*shared));
    });
    if (!taken) send(std::move(*shared));  // the server is stopping
  });
}

void On(Thread thread, DoorContext& context, Call call, const std::function<void(Call)>& handler) {
  switch (thread) {
    case Thread::kLoop:
      return handler(std::move(call));
    case Thread::kReader:
      return OnReader(context, call, [handler, call] { handler(call); });
    case Thread::kDisk:
      return OnDisk(context, call, [handler, call] { handler(call); });
  }
}

// A row without a handler would answer 404 while the document promises it.
Status CheckAllMade(const Router& router) {
  std::set<std::string_view> made;
  for (const auto* route : router.routes()) made.insert(route->name);
  for (const auto& row : NativeRoutes()) {
    if (!made.contains(row.name)) {
      return Fail(ErrorCode::kBug, std::string("no handler for the route ") + row.name);
    }
  }
  return Ok();
}

}  // namespace

Response Denied(const Error& error) {
  const bool unknown = error.id == "ATH-A0002" || error.id == "ATH-A0010";
  return ErrorResponse(unknown ? 401 : RowOf(error.code).http_status, error);
}

Response AttemptOver() {
  return ErrorResponse(410, Error{ErrorCode::kConflict, "this attempt is over"});
}

DoorRoute Native(std::string_view name, std::function<void(Call)> handler) {
  const auto* row = FindNativeRoute(name);
  // Without a row there is no pattern, and the router refuses it.
  if (row == nullptr) return {"", "", std::string(name), std::move(handler)};
  return {row->method, row->path, row->name, std::move(handler), row->file_names};
}

Result<Router> MakeRouter(DoorContext& context) {
  Router router;
  for (auto make : {JobRoutes,       StopRoutes,  SurviveRoutes, CaptureRoutes,   StreamRoutes,
                    FileRoutes,      DiffRoutes,  RunRoutes,     ImportRoutes,    SweepRoutes,
                    DiskRoutes,      AdminRoutes, AgentRoutes,   AgentFileRoutes, ObjectRoutes,
                    SageMakerRoutes, StudyRoutes, LiveRoutes,    LogRoutes,       PageRoutes,
                    SourceRoutes,    QueueRoutes, NameRoutes,    RunChangeRoutes, RunFileRoutes,
                    MediaRoutes,     MlflowRoutes}) {
    for (auto& route : make(context)) {
      Route guarded{route.method, route.pattern, route.name, {}, route.file_names};
      const auto* row = FindNativeRoute(route.name);
      guarded.handler = [&context, name = route.name, thread = row ? row->thread : Thread::kLoop,
                         handler = std::move(route.handler)](Request request, Captures captures,
                                                             Responder responder) {
        if (auto status = CheckOrigin(context, request); !status) {
          return responder.Send(Denied(status.error()));
        }
        auto caller = Authorize(context, request, name);
        if (!caller) return responder.Send(Denied(caller.error()));
        Spare(context, request, responder);
        On(thread, context,
           {std::move(request), std::move(captures), std::move(*caller), responder}, handler);
      };
      ATHANOR_CHECK_OK(router.Add(std::move(guarded)));
    }
  }
  ATHANOR_CHECK_OK(CheckAllMade(router));
  return router;
}

bool AsksWhoCalls(const DoorContext& context, const Router& router, const Request& head) {
  const auto match = router.Find(head.method, head.raw_path);
  return match.route && AsksWhoCalls(context, head, match.route->name);
}

BodyPolicy PolicyFor(DoorContext& context, const Router& router, const Request& head) {
  BodyPolicy policy;
  auto match = router.Find(head.method, head.raw_path);
  if (!match.route) return policy;
  // Nobody may fill the disk before the caller is known.
  auto caller = Authorize(context, head, match.route->name);
  if (!caller) {
    policy.refuse = Denied(caller.error());
    return policy;
  }
  const std::string& name = match.route->name;
  // Nor may agents whose attempt is over: their tokens are right for ever.
  if (caller->attempt && !caller->scope && !context.engine.JobOf(*caller->attempt)) {
    policy.refuse = AttemptOver();
    return policy;
  }
  if (IsAgentFileRoute(name)) return AgentFilePolicy(context, match, head, *caller);
  if (const auto* row = FindNativeRoute(name)) {
    switch (row->limit) {
      case BodyLimit::kUsual:
        break;
      case BodyLimit::kSpec:
        policy.max_bytes = kMostSpec;
        break;
      case BodyLimit::kReport:
        policy.max_bytes = kMostReport;
        break;
      case BodyLimit::kBlob:
        policy.max_bytes = kMostBlob;
        SpoolTo(policy, JoinPath(context.blobs.dir(), "tmp"));
        break;
    }
  } else if (EndsWith(name, "mlflow.artifacts.put")) {
    policy.max_bytes = kMostBlob;
    (void)MakeDirs(context.artifacts).ok();  // if it is not there, no file can be made in it
    SpoolTo(policy, context.artifacts);
  } else if (StartsWith(name, "mlflow.") || StartsWith(name, "ajax.mlflow.")) {
    policy.max_bytes = kMostCall;
  }
  return policy;
}

}  // namespace athanor
