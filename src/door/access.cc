#include "door/access.h"

#include <openssl/crypto.h>

#include "base/hash.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr Permission kPermissions[] = {
    {"health", Access::kPublic},
    {"prometheus", Access::kRead},
    {"openapi", Access::kPublic},
    {"session", Access::kRead},
    {"server.show", Access::kRead},
    {"server.stop", Access::kAdmin},
    {"server.backup", Access::kAdmin},
    {"server.gc", Access::kAdmin},
    {"jobs.submit", Access::kSubmit},
    {"jobs.list", Access::kRead},
    {"jobs.show", Access::kRead},
    {"jobs.events", Access::kRead},
    {"jobs.logs", Access::kRead},
    {"jobs.stream", Access::kRead},
    {"jobs.metrics", Access::kRead},
    {"jobs.points", Access::kRead},
    {"jobs.stop", Access::kSubmit},
    {"jobs.interrupt", Access::kSubmit},
    {"jobs.checkpoints", Access::kRead},
    {"jobs.resume", Access::kSubmit},
    {"jobs.capture", Access::kRead},
    {"jobs.captured", Access::kRead},
    {"jobs.retry", Access::kSubmit},
    {"jobs.remove", Access::kSubmit},
    {"jobs.outputs", Access::kRead},
    {"jobs.file", Access::kRead},
    {"jobs.exec", Access::kAdmin},
    {"jobs.diff", Access::kRead},
    {"events.stream", Access::kRead},
    {"blobs.missing", Access::kSubmit},
    {"blobs.put", Access::kSubmit},
    {"blobs.get", Access::kRead},
    {"types.list", Access::kRead},
    {"secrets.list", Access::kSubmit},
    {"secrets.set", Access::kAdmin},
    {"secrets.remove", Access::kAdmin},
    {"tokens.list", Access::kAdmin},
    {"tokens.create", Access::kAdmin},
    {"tokens.revoke", Access::kAdmin},
    {"agent.report", Access::kAgent},
    {"agent.commands", Access::kAgent},
    {"agent.secrets", Access::kAgent},
};

Access AccessOf(std::string_view route) {
  for (const auto& row : kPermissions) {
    if (row.route == route) return row.need;
  }
  return Access::kNobody;
}

tl::unexpected<Error> Refuse(std::string what, std::string hint, std::string id) {
  Error error;
  error.code = ErrorCode::kDenied;
  error.what = std::move(what);
  error.hint = std::move(hint);
  error.id = std::move(id);
  return Fail(std::move(error));
}

bool Enough(Scope held, Access need) {
  switch (need) {
    case Access::kPublic: return true;
    case Access::kRead: return Covers(held, Scope::kRead);
    case Access::kSubmit: return Covers(held, Scope::kSubmit);
    case Access::kAdmin: return Covers(held, Scope::kAdmin);
    case Access::kAgent:
    case Access::kNobody: return false;
  }
  return false;
}

Result<Caller> AuthorizeAgent(const DoorContext& context, std::string_view token) {
  constexpr std::string_view kPrefix = "athjob_";
  auto parts = StartsWith(token, kPrefix) ? Split(token.substr(kPrefix.size()), '_')
                                          : std::vector<std::string>();
  if (parts.size() == 2) {
    if (auto attempt = AttemptId::Parse(parts[0])) {
      auto right = IngestToken(context.ingest_key, *attempt);
      if (right.size() == token.size() &&
          CRYPTO_memcmp(right.data(), token.data(), right.size()) == 0) {
        return Caller{"agent", std::nullopt, *attempt};
      }
    }
  }
  return Refuse("not an agent's token", "", "ATH-A0001");
}

// A browser sends at least one of these with anything but a plain navigation.
bool LooksLikeBrowser(const Request& request) {
  return request.headers.Has("Origin") || request.headers.Has("Sec-Fetch-Site") ||
         request.headers.Has("Cookie") || request.headers.Has("Referer");
}

std::string HostName(std::string_view host) {
  if (StartsWith(host, "[")) return std::string(host.substr(0, host.find(']') + 1));
  return std::string(host.substr(0, host.find(':')));
}

}  // namespace

std::span<const Permission> Permissions() { return kPermissions; }

std::string CsrfToken(const DoorContext& context) {
  return Sha256Hex(context.ingest_key + Sha256Hex(context.ingest_key + "csrf"));
}

Status CheckOrigin(const DoorContext& context, const Request& request) {
  if (request.peer.unix_socket) return Ok();
  auto host = request.headers.Get("Host");
  auto name = ToLower(HostName(host));
  bool known = name == "localhost" || name == "127.0.0.1" || name == "[::1]" ||
               (!context.info.url.empty() &&
                context.info.url.substr(context.info.url.find("//") + 2) == host);
  if (!known) {
    return Refuse("Host \"" + Printable(host.substr(0, 100)) + "\" is not this server's name",
                  "use " + context.info.url, "ATH-A0003");
  }
  auto origin = request.headers.Get("Origin");
  if (!origin.empty() && origin != std::string(request.peer.tls ? "https://" : "http://") +
                                       std::string(host)) {
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
  std::string_view token =
      StartsWith(authorization, "Bearer ") ? authorization.substr(7) : std::string_view();
  if (need == Access::kAgent) return AuthorizeAgent(context, token);
  if (need == Access::kPublic) return Caller{"anyone", std::nullopt, std::nullopt};

  Caller caller;
  if (!authorization.empty()) {
    if (token.empty()) return Refuse("only Bearer tokens are understood here", "", "ATH-A0002");
    auto info = context.tokens.Verify(token, context.clock.Wall());
    if (!info) {
      Error error = info.error();
      if (error.code == ErrorCode::kDenied) error.id = "ATH-A0002";
      return Fail(std::move(error));
    }
    caller = {"token:" + (info->note.empty() ? info->id : info->note), info->scope, std::nullopt};
  } else if ((request.peer.unix_socket || request.peer.loopback) && request.peer.uid &&
             (*request.peer.uid == context.info.uid || *request.peer.uid == 0)) {
    caller = {context.info.user, Scope::kAdmin, std::nullopt};
  } else {
    return Refuse("this server does not know you", "ask its owner for `ath token create`, then "
                  "export ATHANOR_TOKEN=...", "ATH-A0002");
  }
  if (!Enough(*caller.scope, need)) {
    return Refuse("a token of scope " + std::string(NameOf(*caller.scope)) + " may not do this",
                  "ath token create --scope submit", "ATH-A0006");
  }
  bool changes = request.method != "GET" && request.method != "HEAD";
  if (changes && LooksLikeBrowser(request) && token.empty()) {
    auto csrf = request.headers.Get("X-Athanor-Csrf");
    auto right = CsrfToken(context);
    if (csrf.size() != right.size() || CRYPTO_memcmp(csrf.data(), right.data(), right.size()) != 0) {
      return Refuse("a page must send X-Athanor-Csrf to change anything", "GET /api/v1/session",
                    "ATH-A0007");
    }
  }
  return caller;
}

}  // namespace athanor
