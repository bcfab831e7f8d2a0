// The native door's house-keeping: health, figures, types, secrets, tokens.
#include <nlohmann/json.hpp>

#include "base/exec/serving_thread.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/openapi.h"
#include "door/queries.h"
#include "job/codec.h"
#include "record/backup/backup.h"
#include "steer/hub.h"

namespace athanor {
namespace {

void Health(DoorContext&, const Call& call) { call.Json(200, "{\"status\":\"ok\"}"); }

void OpenApi(DoorContext&, const Call& call) { call.Json(200, OpenApiDocument()); }

void Session(DoorContext& context, const Call& call) {
  Json out = {{"user", call.caller.user}, {"csrf", CsrfToken(context)}};
  call.Json(200, DumpJson(out));
}

// What the control thread knows for the figures.
struct Reserved {
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
};

std::string Figures(const DoorContext& context, const Reserved& reserved) {
  auto counts = context.jobs.Count();
  std::string out;
  const auto figure = [&out](const char* name, const char* kind, const char* help, auto value) {
    out += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{0} {3}\n", name, kind, help, value);
  };
  out += "# HELP athanor_jobs Jobs by state.\n# TYPE athanor_jobs gauge\n";
  if (counts) {
    for (const auto& [state, count] : counts->by_state) {
      out += fmt::format("athanor_jobs{{state=\"{}\"}} {}\n", NameOf(state), count);
    }
  }
  figure("athanor_cpus", "gauge", "CPUs of this machine that jobs may have.",
         context.inventory.cpu_millis / 1000.0);
  figure("athanor_cpus_reserved", "gauge", "CPUs reserved for jobs.",
         static_cast<double>(reserved.cpu_millis) / 1000.0);
  figure("athanor_memory_reserved_bytes", "gauge", "Memory reserved for jobs.",
         reserved.memory_bytes);
  figure("athanor_uptime_seconds", "counter", "Since this server started.",
         (context.clock.Wall().ms - context.info.started.ms) / 1000);
  figure("athanor_loop_longest_task_seconds", "gauge",
         "Most processor time that one task took on the thread that serves all clients.",
         static_cast<double>(context.loop.longest_task().count()) / 1e6);
  figure("athanor_loop_long_reads_total", "counter",
         "Files and folders of more than 64 KiB that were read on that thread.",
         LongReadsWhileServing());
  return out;
}

void Prometheus(DoorContext& context, const Call& call) {
  Reserved reserved;
  for (const auto* record : context.engine.Holding()) {
    reserved.cpu_millis += record->current()->placement.cpu_millis;
    reserved.memory_bytes += record->current()->placement.memory_bytes;
  }
  OnReader(context, call, [&context, call, reserved] {
    Response response = Response::Text(200, Figures(context, reserved));
    response.headers.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    call.responder.Send(std::move(response));
  });
}

// On a reader: jobs are counted.
void ShowServer(DoorContext& context, const Call& call) {
  auto counts = context.jobs.Count();
  Json out = Json::object();
  out["version"] = context.info.version;
  out["pid"] = ::getpid();
  out["url"] = context.info.url;
  out["socket"] = context.info.socket;
  if (!context.info.agents_url.empty()) out["agents"] = context.info.agents_url;
  out["home"] = context.info.home;
  out["user"] = context.info.user;
  out["started"] = Rfc3339(context.info.started);
  out["uptime_ms"] = context.clock.Wall().ms - context.info.started.ms;
  out["instances"] = context.info.simulate ? "simulate" : "real";
  out["machine"] = ToJson(context.inventory);
  if (const uint64_t wanted = context.jobs.waits_for_bytes()) {
    out["waits_for_disk"] = {{"path", context.info.home},
                             {"free_bytes", FreeBytes(context.info.home).value_or(0)},
                             {"wanted_bytes", wanted}};
  }
  if (!context.info.notices.empty()) out["notices"] = context.info.notices;
  if (counts) {
    out["jobs"] = counts->jobs;
    Json states = Json::object();
    for (const auto& [state, count] : counts->by_state) states[std::string(NameOf(state))] = count;
    out["states"] = std::move(states);
  }
  call.Json(200, DumpJson(out));
}

void StopServer(DoorContext& context, const Call& call) {
  call.Json(200, "{\"stopping\":true}");
  context.loop.After(Millis(50), [&context] { context.shut_down(); });
}

// On the thread for such work: it takes as long as there is to copy.
void Backup(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  std::string to = body->is_object() && body->contains("to") && (*body)["to"].is_string()
                       ? (*body)["to"].get<std::string>()
                       : "";
  bool taken =
      context.readers.Submit([call, to, home = context.info.home, version = context.info.version] {
        auto made = MakeBackup(StoreLayout{home}, to, version);
        if (!made) return call.Refuse(made.error());
        call.Json(200, DumpJson(Json{{"path", made->path},
                                     {"version", made->version},
                                     {"home", made->home},
                                     {"made", Rfc3339(made->made)},
                                     {"schema", made->schema},
                                     {"jobs", made->jobs},
                                     {"live", made->live},
                                     {"files", made->files},
                                     {"bytes", made->bytes},
                                     {"linked", made->linked},
                                     {"secret_key", made->secret_key}}));
      });
  if (!taken) call.Refuse(Error{ErrorCode::kUnavailable, "the server is stopping"});
}

void Types(DoorContext& context, const Call& call) {
  std::map<std::string, TypeLosses> measured;  // of machines that may be taken away
  auto losses = context.losses.All();
  if (!losses) return call.Refuse(losses.error());
  for (auto& row : *losses) {
    if (row.spot) measured[row.type] = row;
  }
  Json all = Json::array();
  for (const auto& type : context.catalogue.All()) {
    Json row = {{"name", type.name},
                {"cpus", type.cpu_millis / 1000.0},
                {"memory_bytes", type.memory_bytes},
                {"gpus", type.gpus},
                {"gpu_model", type.gpu_model},
                {"on_demand_micros", type.on_demand_micros},
                {"source", type.source},
                {"fits", Fits(type, context.inventory)}};
    if (type.spot_micros) row["spot_micros"] = *type.spot_micros;
    if (auto at = measured.find(type.name); at != measured.end()) {
      row["held_ms"] = at->second.held_ms;
      row["losses"] = at->second.losses;
    }
    all.push_back(std::move(row));
  }
  Json out = {{"types", std::move(all)}};
  out["machine"] = ToJson(context.inventory);
  out["instances"] = context.info.simulate ? "simulate" : "real";
  call.Json(200, DumpJson(out));
}

void ListSecrets(DoorContext& context, const Call& call) {
  auto secrets = context.secrets.List();
  if (!secrets) return call.Refuse(secrets.error());
  Json all = Json::array();
  for (const auto& secret : *secrets) {
    all.push_back({{"name", secret.name},
                   {"created", Rfc3339(secret.created)},
                   {"updated", Rfc3339(secret.updated)}});
  }
  call.Json(200, DumpJson(Json{{"secrets", std::move(all)}}));
}

// The body is the value itself, so that no JSON copy of it is left in memory.
void SetSecret(DoorContext& context, const Call& call) {
  auto status = context.secrets.Set(call.captures["name"], call.request.body, context.clock.Wall());
  if (!status) return call.Refuse(status.error());
  call.Json(200, DumpJson(Json{{"name", call.captures["name"]}}));
}

void RemoveSecret(DoorContext& context, const Call& call) {
  auto status = context.secrets.Remove(call.captures["name"]);
  if (!status) return call.Refuse(status.error());
  call.Json(200, DumpJson(Json{{"removed", call.captures["name"]}}));
}

Json TokenView(const TokenInfo& info) {
  Json row = {{"id", info.id},
              {"note", info.note},
              {"scope", std::string(NameOf(info.scope))},
              {"created", Rfc3339(info.created)},
              {"revoked", info.revoked}};
  if (info.expires.ms != 0) row["expires"] = Rfc3339(info.expires);
  if (info.last_used.ms != 0) row["last_used"] = Rfc3339(info.last_used);
  return row;
}

void ListTokens(DoorContext& context, const Call& call) {
  auto tokens = context.tokens.List();
  if (!tokens) return call.Refuse(tokens.error());
  auto keys = context.access_keys.List();
  if (!keys) return call.Refuse(keys.error());
  Json all = Json::array();
  for (const auto& token : *tokens) all.push_back(TokenView(token));
  for (const auto& key : *keys) {
    all.push_back(TokenView(key));
    all.back()["kind"] = "aws";
  }
  call.Json(200, DumpJson(Json{{"tokens", std::move(all)}}));
}

void CreateToken(DoorContext& context, const Call& call) {
  auto body = ParseJson(call.request.body);
  if (!body) return call.Refuse(body.error());
  auto text = [&](const char* key) {
    return body->is_object() && body->contains(key) && (*body)[key].is_string()
               ? (*body)[key].get<std::string>()
               : std::string();
  };
  auto scope = ScopeNamed(text("scope").empty() ? "submit" : text("scope"));
  if (!scope) {
    return call.Refuse(Error{ErrorCode::kInvalid, "no such scope: " + Printable(text("scope")),
                             "read, submit or admin"}
                           .Id("ATH-K0004"));
  }
  WallTime now = context.clock.Wall();
  WallTime expires;
  if (!text("expires_in").empty()) {
    auto span = ParseDuration(text("expires_in"));
    if (!span) return call.Refuse(span.error());
    expires.ms = now.ms + span->count();
  }
  if (text("kind") == "aws") {
    auto key = context.access_keys.Create(text("note"), *scope, now, expires);
    if (!key) return call.Refuse(key.error());
    Json out = TokenView(key->info);
    out["kind"] = "aws";
    out["access_key_id"] = key->info.id;
    out["secret_access_key"] = key->secret;
    return call.Json(201, DumpJson(out));
  }
  auto made = context.tokens.Create(text("note"), *scope, now, expires);
  if (!made) return call.Refuse(made.error());
  Json out = TokenView(made->info);
  out["token"] = made->text;
  call.Json(201, DumpJson(out));
}

void RevokeToken(DoorContext& context, const Call& call) {
  auto status = context.tokens.Revoke(call.captures["id"]);
  if (!status && status.error().code == ErrorCode::kNotFound) {
    status = context.access_keys.Revoke(call.captures["id"]);
  }
  if (!status) return call.Refuse(status.error());
  call.Json(200, DumpJson(Json{{"revoked", call.captures["id"]}}));
}

}  // namespace

std::vector<DoorRoute> AdminRoutes(DoorContext& context) {
  auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("health", bind(Health)),
      Native("prometheus", bind(Prometheus)),
      Native("openapi", bind(OpenApi)),
      Native("session", bind(Session)),
      Native("server.show", bind(ShowServer)),
      Native("server.stop", bind(StopServer)),
      Native("server.backup", bind(Backup)),
      Native("types.list", bind(Types)),
      Native("secrets.list", bind(ListSecrets)),
      Native("secrets.set", bind(SetSecret)),
      Native("secrets.remove", bind(RemoveSecret)),
      Native("tokens.list", bind(ListTokens)),
      Native("tokens.create", bind(CreateToken)),
      Native("tokens.revoke", bind(RevokeToken)),
  };
}

}  // namespace athanor
