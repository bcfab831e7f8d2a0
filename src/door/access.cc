#include "door/access.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/io/hash.h"
#include "base/text/text.h"
#include "door/mlflow/mlflow.h"
#include "door/native/route_table.h"
#include "door/page/session.h"
#include "link/job_files_service.h"
#include "steer/attempt_tokens.h"

namespace athanor {
namespace {

// All doors' rows, in one table.
const std::vector<Permission>& Table() {
  static const auto mlflow = MlflowPermissions();
  static const auto table = [] {
    std::vector<Permission> rows;
    for (const auto& row : NativeRoutes()) rows.push_back({row.name, row.need});
    for (const auto& row : JobFilesService::Rows()) rows.push_back({row.name, Access::kAgent});
    for (const auto& [route, need] : mlflow) rows.push_back({route, need});
    return rows;
  }();
  return table;
}

Access AccessOf(std::string_view route) {
  static const auto by_route = [] {
    std::unordered_map<std::string_view, Access> rows;
    for (const auto& row : Table()) rows.emplace(row.route, row.need);
    return rows;
  }();
  const auto at = by_route.find(route);
  return at == by_route.end() ? Access::kNobody : at->second;
}

tl::unexpected<Error> Refuse(std::string what, std::string hint, std::string id) {
  return Fail(Error{ErrorCode::kDenied, std::move(what), std::move(hint)}.Id(std::move(id)));
}

bool Enough(Scope held, Access need) {
  switch (need) {
    case Access::kPublic:
      return true;
    case Access::kRead:
      return Covers(held, Scope::kRead);
    case Access::kSubmit:
      return Covers(held, Scope::kSubmit);
    case Access::kAdmin:
      return Covers(held, Scope::kAdmin);
    case Access::kAgent:
    case Access::kNobody:
      return false;
  }
  return false;
}

Result<Caller> AuthorizeAgent(const DoorContext& context, std::string_view token) {
  if (const auto agent = ReadIngestToken(context.ingest_key, token)) {
    return Caller{"agent", std::nullopt, agent->attempt, agent->host};
  }
  return Refuse("not an agent's token", "", "ATH-A0001");
}

// A script in a job logs with a token of its attempt, good as long as that lives, and for
// nothing but MLflow's calls.
Result<Caller> AuthorizeScript(const DoorContext& context, std::string_view token) {
  const auto attempt = ReadRunToken(context.ingest_key, token);
  const auto job = attempt ? JobNowIn(context, *attempt) : std::nullopt;
  if (!job) return Refuse("this job's token is void: its attempt is over", "", "ATH-A0002");
  const auto* live = context.engine.Live(*job);
  return Caller{live ? live->user : "job", Scope::kSubmit, *attempt, 0};
}

bool IsMlflow(std::string_view route) {
  return StartsWith(route, "mlflow.") || StartsWith(route, "ajax.mlflow.");
}

// At the port for other machines: agents, and the scripts of their jobs. Everyone else has the
// server's own address.
Result<Caller> AuthorizeElsewhere(const DoorContext& context, std::string_view route, Access need,
                                  std::string_view token) {
  if (need == Access::kAgent && !token.empty()) return AuthorizeAgent(context, token);
  if (StartsWith(token, "athrun_") && IsMlflow(route)) return AuthorizeScript(context, token);
  return Refuse("only agents, and the scripts of their jobs, are served at this address",
                "use the address that the server's owner gives to people", "ATH-A0002");
}

// The token of a request. MLflow's clients may send it as a password, too.
std::string TokenOf(std::string_view authorization, std::string_view route) {
  if (StartsWith(authorization, "Bearer ")) return std::string(authorization.substr(7));
  if (!StartsWith(authorization, "Basic ") || !IsMlflow(route)) return "";
  const auto pair = FromBase64(authorization.substr(6));
  return pair ? pair->substr(std::min(pair->find(':'), pair->size() - 1) + 1) : "";
}

// Whose session the page's cookie is. One that is over counts as none: a browser sends it until
// it has another.
std::optional<PageUser> SessionOf(const DoorContext& context, const Request& request) {
  const auto cookies = request.headers.Get("Cookie");
  if (cookies.empty()) return std::nullopt;
  const auto session = CookieIn(cookies, SessionCookieName(context.ingest_key));
  const WallTime now = context.clock.Wall();
  auto user = ReadSession(context.ingest_key, session, now);
  if (!user || user->token.empty()) return user;
  const auto tokens = context.tokens.List();
  if (!tokens) return std::nullopt;
  const auto alive = [&](const TokenInfo& token) {
    return token.id == user->token && !token.revoked &&
           (token.expires.ms == 0 || now.ms < token.expires.ms);
  };
  return std::any_of(tokens->begin(), tokens->end(), alive) ? user : std::nullopt;
}

// A browser sends at least one of these with anything but a plain navigation.
bool LooksLikeBrowser(const Request& request) {
  return request.headers.Has("Origin") || request.headers.Has("Sec-Fetch-Site") ||
         request.headers.Has("Cookie") || request.headers.Has("Referer");
}

bool HasOwnersUid(const DoorContext& context, const Peer& peer) {
  return (peer.unix_socket || peer.loopback) && peer.uid &&
         (*peer.uid == context.info.uid || *peer.uid == 0);
}

// Jobs have the server's uid, so this uid says little; but root on a server of another user is not
// a job.
bool MayBeJob(const DoorContext& context, const Peer& peer) { return peer.uid == context.info.uid; }

std::string HostName(std::string_view host) {
  if (StartsWith(host, "[")) return std::string(host.substr(0, host.find(']') + 1));
  return std::string(host.substr(0, host.find(':')));
}

}  // namespace

std::span<const Permission> Permissions() { return Table(); }

bool AsksWhoCalls(const DoorContext& context, const Request& head, std::string_view route) {
  if (!HasOwnersUid(context, head.peer) || !MayBeJob(context, head.peer)) return false;
  if (head.headers.Has("Authorization")) return false;
  switch (AccessOf(route)) {
    case Access::kRead:
    case Access::kSubmit:
    case Access::kAdmin:
      return !SessionOf(context, head);
    case Access::kPublic:
    case Access::kAgent:
    case Access::kNobody:
      break;
  }
  return false;
}

std::string CsrfToken(const DoorContext& context) {
  return Sha256Hex(context.ingest_key + Sha256Hex(context.ingest_key + "csrf"));
}

Status CheckOrigin(const DoorContext& context, const Request& request) {
  if (request.peer.unix_socket) return Ok();
  auto host = request.headers.Get("Host");
  auto name = ToLower(HostName(host));
  const auto& url = request.peer.elsewhere ? context.info.agents_url : context.info.url;
  // From elsewhere, too: a script's clients name the port of their own machine at which its agent
  // passes them on, and what they sign has that name.
  bool known = name == "localhost" || name == "127.0.0.1" || name == "[::1]" ||
               (!url.empty() && SameName(url.substr(url.find("//") + 2), host));
  if (!known) {
    return Refuse("Host \"" + Printable(host.substr(0, 100)) + "\" is not this server's name",
                  "use " + url, "ATH-A0003");
  }
  auto origin = request.headers.Get("Origin");
  if (!origin.empty() && request.peer.elsewhere) {
    return Refuse("pages may not call this address", "", "ATH-A0004");
  }
  if (!origin.empty() &&
      origin != std::string(request.peer.tls ? "https://" : "http://") + std::string(host)) {
    return Refuse("pages of another origin may not call this server", "", "ATH-A0004");
  }
  return Ok();
}

Result<Caller> Authorize(const DoorContext& context, const Request& request,
                         std::string_view route) {
  auto need = AccessOf(route);
  if (need == Access::kNobody) {
    return Refuse("route " + std::string(route) + " is in no permission table", "", "ATH-A0005");
  }
  std::string_view authorization = request.headers.Get("Authorization");
  const std::string token = TokenOf(authorization, route);
  if (request.peer.elsewhere) return AuthorizeElsewhere(context, route, need, token);
  if (need == Access::kAgent) return AuthorizeAgent(context, token);
  if (need == Access::kPublic) return Caller{"anyone", std::nullopt, std::nullopt};

  if (StartsWith(token, "athrun_") && IsMlflow(route)) return AuthorizeScript(context, token);

  Caller caller;
  if (!authorization.empty()) {
    if (token.empty()) return Refuse("only Bearer tokens are understood here", "", "ATH-A0002");
    auto info = context.tokens.Verify(token, context.clock.Wall());
    if (!info) {
      Error error = info.error();
      if (error.code == ErrorCode::kDenied) error.id = "ATH-A0002";
      return Fail(std::move(error));
    }
    caller = {"token:" + (info->note.empty() ? info->id : info->note), info->scope, std::nullopt,
              0};
  } else if (auto user = SessionOf(context, request)) {
    caller = {user->user, user->scope, std::nullopt, 0};
  } else if (HasOwnersUid(context, request.peer) &&
             (!MayBeJob(context, request.peer) || request.peer.acts_for_uid == true)) {
    caller = {context.info.user, Scope::kAdmin, std::nullopt, 0};
  } else if (HasOwnersUid(context, request.peer)) {
    return Refuse("what runs inside a job may not act for the user it runs as",
                  "use the job's own token: MLFLOW_TRACKING_TOKEN, or the AWS_ variables; for more "
                  "give it ATHANOR_TOKEN as a secret: ath token create --scope submit",
                  "ATH-A0010");
  } else {
    return Refuse("this server does not know you",
                  "ask its owner for `ath token create`, then "
                  "export ATHANOR_TOKEN=...",
                  "ATH-A0002");
  }
  if (!Enough(*caller.scope, need)) {
    return Refuse("a token of scope " + std::string(NameOf(*caller.scope)) + " may not do this",
                  "ath token create --scope submit", "ATH-A0006");
  }
  bool changes = request.method != "GET" && request.method != "HEAD";
  if (changes && LooksLikeBrowser(request) && token.empty()) {
    if (!SameSecretText(request.headers.Get("X-Athanor-Csrf"), CsrfToken(context))) {
      return Refuse("a page must send X-Athanor-Csrf to change anything", "GET /api/v1/session",
                    "ATH-A0007");
    }
  }
  return caller;
}

}  // namespace athanor
