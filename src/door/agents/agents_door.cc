#include "door/agents/agents_door.h"

#include <utility>

#include "door/access.h"
#include "door/doors.h"

namespace athanor {

std::optional<Response> AgentsDoor::Refusal(const Request& head) const {
  if (const auto origin = CheckOrigin(context_, head); !origin) return Denied(origin.error());
  if (head.headers.Has("Authorization") || AwsFront::IsSigned(head)) return std::nullopt;
  return Denied(Error{ErrorCode::kDenied, "this server does not know you"}
                    .Why("this address is for agents of other machines, which have a token")
                    .Id("ATH-A0002"));
}

void AgentsDoor::Handle(Request request, Responder responder) {
  if (auto refusal = Refusal(request)) return responder.Send(std::move(*refusal));
  if (AwsFront::IsSigned(request)) return aws_.Handle(std::move(request), std::move(responder));
  router_.Dispatch(std::move(request), responder);
}

BodyPolicy AgentsDoor::PolicyFor(const Request& head) {
  if (auto refusal = Refusal(head)) {
    BodyPolicy policy;
    policy.refuse = std::move(refusal);
    return policy;
  }
  return AwsFront::IsSigned(head) ? aws_.PolicyFor(head)
                                  : athanor::PolicyFor(context_, router_, head);
}

}  // namespace athanor
