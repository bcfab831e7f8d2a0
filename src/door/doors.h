// A door is a list of routes over one context; Doors() joins them behind the access check, which is
// below routing: no handler runs for a request that was not authorised.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "door/access.h"
#include "door/context.h"
#include "net/http/router.h"

namespace athanor {

struct Call {
  Request request;
  Captures captures;
  Caller caller;
  Responder responder;

  void Json(int status, std::string body) const {
    responder.Send(Response::Json(status, std::move(body)));
  }
  void Refuse(const Error& error) const { responder.Send(ErrorResponse(error)); }
};

struct DoorRoute {
  std::string method;
  std::string pattern;
  std::string name;
  std::function<void(Call)> handler;
  bool file_names = false;  // see Route
};

// The row of that name in native/route_table.h, with its handler.
DoorRoute Native(std::string_view name, std::function<void(Call)> handler);

// To a refusal of CheckOrigin or Authorize: 401 asks for a credential, 403 says that this one is
// not enough.
Response Denied(const Error& error);
// 410: to an agent whose attempt is over, or was replaced.
Response AttemptOver();

// All routes of all doors, each behind CheckOrigin and Authorize.
Result<Router> MakeRouter(DoorContext& context);
// As in access.h, by the route that the request goes to.
bool AsksWhoCalls(const DoorContext& context, const Router& router, const Request& head);
// How bodies are received: uploads of blobs go to a file.
BodyPolicy PolicyFor(DoorContext& context, const Router& router, const Request& head);

std::vector<DoorRoute> JobRoutes(DoorContext& context);
std::vector<DoorRoute> StreamRoutes(DoorContext& context);
std::vector<DoorRoute> FileRoutes(DoorContext& context);
std::vector<DoorRoute> AdminRoutes(DoorContext& context);
std::vector<DoorRoute> AgentRoutes(DoorContext& context);
std::vector<DoorRoute> ObjectRoutes(DoorContext& context);
std::vector<DoorRoute> SageMakerRoutes(DoorContext& context);
std::vector<DoorRoute> SurviveRoutes(DoorContext& context);
std::vector<DoorRoute> CaptureRoutes(DoorContext& context);
std::vector<DoorRoute> StopRoutes(DoorContext& context);
std::vector<DoorRoute> SweepRoutes(DoorContext& context);
std::vector<DoorRoute> DiffRoutes(DoorContext& context);
std::vector<DoorRoute> RunRoutes(DoorContext& context);
std::vector<DoorRoute> ImportRoutes(DoorContext& context);
std::vector<DoorRoute> StudyRoutes(DoorContext& context);

// A run by its id in either form, a job's reference, a name (the newest of it), or a part of
// an id of at least four digits.
Result<JobId> ResolveRun(const DoorContext& context, const std::string& reference);

}  // namespace athanor
