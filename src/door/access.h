// Access control: deny by default, below routing. A credential that is presented is always
// verified; without one, the server's own Unix user is trusted on the socket and on loopback, but
// never from inside a job. At the port for other machines (Peer::elsewhere) only agents' tokens and
// those of their scripts count, and nobody is trusted without one. Every route needs a row in the
// permission table; a request whose route has none is refused.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "door/context.h"
#include "net/http/http_types.h"

namespace athanor {

enum class Access { kNobody, kPublic, kRead, kSubmit, kAdmin, kAgent };

struct Permission {
  std::string_view route;  // Route::name
  Access need;
};
std::span<const Permission> Permissions();

struct Caller {
  std::string user;  // for records: "ann", "token:laptop"
  std::optional<Scope> scope;
  std::optional<AttemptId> attempt;  // an agent, or a script
  uint32_t host = 0;                 // an agent's, of its attempt
};

// The caller, if the request may go to `route`; 401 and 403 differ by code and id.
Result<Caller> Authorize(const DoorContext& context, const Request& request,
                         std::string_view route);
// Whether only the peer's uid could allow this request, so that it must be known whether it comes
// from inside a job (Peer::acts_for_uid).
bool AsksWhoCalls(const DoorContext& context, const Request& head, std::string_view route);
// Host and Origin: refuses DNS rebinding and foreign pages, for every request.
Status CheckOrigin(const DoorContext& context, const Request& request);
std::string CsrfToken(const DoorContext& context);

}  // namespace athanor
