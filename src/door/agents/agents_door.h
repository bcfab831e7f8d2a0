// The door for other machines: what the server answers at the address that it gives to agents which
// do not run on its own machine. Agents call with the token of their attempt and host; scripts of
// their jobs call through their agent, with the run's token (MLflow) or requests signed with the
// attempt's key (AWS). There is nothing else: no page, no cookies, no tokens of people, and nothing
// for a caller without a credential.
//
// The same routes and handlers as everywhere; what a caller may do is decided by Authorize and by
// AwsFront, which see that the request came from elsewhere.
//
// Threads: the loop's.
#pragma once

#include <optional>

#include "door/aws/aws_front.h"
#include "door/context.h"
#include "net/http/http_server.h"
#include "net/http/router.h"

namespace athanor {

class AgentsDoor {
 public:
  AgentsDoor(DoorContext& context, const Router& router, AwsFront& aws)
      : context_(context), router_(router), aws_(aws) {}

  // Only of requests with Peer::elsewhere.
  void Handle(Request request, Responder responder);
  BodyPolicy PolicyFor(const Request& head);

 private:
  // Before anyone looks at what is asked for.
  std::optional<Response> Refusal(const Request& head) const;

  DoorContext& context_;
  const Router& router_;
  AwsFront& aws_;
};

}  // namespace athanor
