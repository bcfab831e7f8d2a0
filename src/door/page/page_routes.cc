// The page itself: its files from the program, and how a browser gets a session.
#include <array>
#include <memory>

#include "base/text/format.h"
#include "base/text/json_writer.h"
#include "base/text/text.h"
#include "door/page/page_doors.h"
#include "door/page/page_pack.h"
#include "door/page/session.h"

namespace athanor {
namespace {

// No script but the page's own files; nothing from, and nothing to, another host.
constexpr char kPolicy[] =
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self' blob:; connect-src 'self'; worker-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
constexpr char kNoPage[] =
    "<!doctype html><meta charset=\"utf-8\"><title>Athanor</title><p>This program was built "
    "without its page. Build it with <code>tools/build_web</code> (it needs npm), then build "
    "again.</p>\n";

std::string TypeOf(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".json", "application/json"},
      {".png", "image/png"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  for (const auto& [end, type] : kTypes) {
    if (EndsWith(path, end)) return std::string(type);
  }
  return "application/octet-stream";
}

void AddPolicy(Response& response) {
  response.headers.Set("Content-Security-Policy", kPolicy);
  response.headers.Set("X-Content-Type-Options", "nosniff");
  response.headers.Set("Referrer-Policy", "same-origin");
  response.headers.Set("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.Set("Cross-Origin-Resource-Policy", "same-origin");
}

// Files under ui/assets are named by their content and never change; the rest is asked for again.
void SendFile(const Call& call, const std::string& path, const PageFile& file) {
  Response response;
  AddPolicy(response);
  const std::string etag = "\"" + file.etag + "\"";
  response.headers.Set("ETag", etag);
  response.headers.Set("Vary", "Accept-Encoding");
  response.headers.Set("Cache-Control", StartsWith(path, "ui/assets/")
                                            ? "public, max-age=31536000, immutable"
                                            : "no-cache");
  if (call.request.headers.HasToken("If-None-Match", etag)) {
    response.status = 304;
    return call.responder.Send(std::move(response));
  }
  response.headers.Set("Content-Type", TypeOf(path));
  const bool packed =
      !file.gzip.empty() && call.request.headers.HasToken("Accept-Encoding", "gzip");
  if (packed) response.headers.Set("Content-Encoding", "gzip");
  response.body = packed ? file.gzip : file.bytes;
  call.responder.Send(std::move(response));
}

void Index(const Call& call) {
  if (const auto* file = PagePack::Embedded().Find("index.html")) {
    return SendFile(call, "index.html", *file);
  }
  Response response = Response::Text(200, kNoPage);
  response.headers.Set("Content-Type", "text/html; charset=utf-8");
  response.headers.Set("Cache-Control", "no-store");
  AddPolicy(response);
  call.responder.Send(std::move(response));
}

void File(const Call& call) {
  const std::string path = "ui/" + call.captures["path"];
  if (const auto* file = PagePack::Embedded().Find(path)) return SendFile(call, path, *file);
  call.Refuse(Error{ErrorCode::kNotFound, "the page has no file " + Printable(path.substr(0, 200)),
                    "reload the page"}
                  .Id("ATH-A0009"));
}

// The id of the token that the caller showed, or whose session he has; he was verified before.
std::string TokenOf(const DoorContext& context, const Call& call) {
  constexpr std::string_view kBearer = "Bearer ";
  const auto& headers = call.request.headers;
  const WallTime now = context.clock.Wall();
  if (const auto shown = headers.Get("Authorization"); StartsWith(shown, kBearer)) {
    const auto info = context.tokens.Verify(shown.substr(kBearer.size()), now);
    return info ? info->id : "";
  }
  const auto session = CookieIn(headers.Get("Cookie"), SessionCookieName(context.ingest_key));
  const auto user = ReadSession(context.ingest_key, session, now);
  return user ? user->token : "";
}

void MakeLink(const DoorContext& context, PageLinks& links, const Call& call) {
  if (!call.caller.scope) {
    return call.Refuse(
        Error{ErrorCode::kDenied, "nobody to make a link for", "ath ui"}.Id("ATH-A0002"));
  }
  const WallTime now = context.clock.Wall();
  const auto key = links.Make({call.caller.user, *call.caller.scope, TokenOf(context, call)}, now);
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Text("path", "ui/enter/" + key);
  json.Text("url", context.info.url);
  json.Text("expires", Rfc3339(WallTime{now.ms + kLinkLife.count()}));
  json.EndObject();
  call.Json(201, std::move(body));
}

std::string Cookie(const DoorContext& context, const Call& call, const std::string& value,
                   int64_t seconds) {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}",
                     SessionCookieName(context.ingest_key), value, seconds,
                     call.request.peer.tls ? "; Secure" : "");
}

void SignIn(const DoorContext& context, PageLinks& links, const Call& call) {
  const auto user = links.Use(call.captures["key"], context.clock.Wall());
  if (!user) {
    return call.Refuse(
        Error{ErrorCode::kDenied, "this link was used already, or is too old", "ath ui --link"}
            .Why("a link is good once, for two minutes")
            .Id("ATH-A0008"));
  }
  Response response;
  response.status = 303;
  AddPolicy(response);
  response.headers.Set("Location", "../../");  // whatever the page's path behind a proxy
  response.headers.Set("Cache-Control", "no-store");
  response.headers.Set(
      "Set-Cookie",
      Cookie(context, call, MakeSession(context.ingest_key, *user, context.clock.Wall()),
             kSessionLife.count() / 1000));
  call.responder.Send(std::move(response));
}

void Leave(const DoorContext& context, const Call& call) {
  Response response = Response::Json(200, "{\"ended\":true}");
  response.headers.Set("Set-Cookie", Cookie(context, call, "", 0));
  call.responder.Send(std::move(response));
}

}  // namespace

std::vector<DoorRoute> PageRoutes(DoorContext& context) {
  auto links = std::make_shared<PageLinks>();  // of the two routes that make and use them
  return {
      {"GET", "/", "page.index", Index},
      {"GET", "/ui/{path...}", "page.file", File},
      {"GET", "/ui/enter/{key}", "page.enter",
       [&context, links](const Call& call) { SignIn(context, *links, call); }},
      {"POST", "/api/v1/session/link", "session.link",
       [&context, links](const Call& call) { MakeLink(context, *links, call); }},
      {"DELETE", "/api/v1/session", "session.end",
       [&context](const Call& call) { Leave(context, call); }},
  };
}

}  // namespace athanor
