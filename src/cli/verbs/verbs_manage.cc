// retry, rm, diff, types, secret, token: managing what the server keeps.
#include <termios.h>
#include <unistd.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/submission.h"
#include "cli/verbs/verbs.h"
#include "job/codec.h"
#include "price/price.h"
#include "submit/job_file.h"

namespace athanor {
namespace {

// A secret is typed without being seen, or comes from a pipe; never from argv.
Result<std::string> ReadSecretValue(const std::string& name) {
  if (!::isatty(STDIN_FILENO)) {
    ATHANOR_TRY(auto text, ReadAll(STDIN_FILENO, 128 << 10));
    // A line end is the shell's, not the secret's.
    if (EndsWith(text, "\n")) text.pop_back();
    if (EndsWith(text, "\r")) text.pop_back();
    return text;
  }
  std::fprintf(stderr, "value of %s: ", name.c_str());
  termios old{};
  ::tcgetattr(STDIN_FILENO, &old);
  termios hidden = old;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  std::string value;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    value += static_cast<char>(c);
  }
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
  std::fputs("\n", stderr);
  return value;
}

// What `ath retry` runs: the source as it was, unless the folder of now is asked for.
Result<PreparedJob> SourceToRetry(const Common& common, const std::string& name, JobSpec spec,
                                  bool current) {
  const std::string was = spec.source.bundle;
  if (current) return PrepareAgain(common.home, std::move(spec));
  PreparedJob job;
  job.spec = std::move(spec);
  if (common.json || common.quiet || was.empty() || !Exists(job.spec.source.dir)) return job;
  // Only files that changed since they were last hashed are read.
  const auto now = PrepareAgain(common.home, job.spec);
  if (now && now->spec.source.bundle != was) {
    std::fprintf(stderr,
                 "  note    runs the source of %s as it was; ath retry --current %s takes the "
                 "folder as it is now\n",
                 Printable(name).c_str(), ShellQuote(name).c_str());
  }
  return job;
}

}  // namespace

int RetryVerb(const Common& common, const std::string& job, const RunOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto ref = "/api/v1/jobs/" + UrlEncode(job);
  auto record = client->Get(ref);
  if (!record) return Refuse(record.error(), common.json);
  auto spec = SpecFromJson((*record)["spec"]);
  if (!spec) return Refuse(spec.error(), common.json);
  for (const auto& [flag, value] : options.flags) {
    if (auto status = ApplyFlag(*spec, flag, value); !status) {
      return Refuse(status.error(), common.json);
    }
  }
  spec->debug = spec->debug || options.debug;
  auto prepared = SourceToRetry(common, Text(*record, "name"), std::move(*spec), options.current);
  if (!prepared) return Refuse(prepared.error(), common.json);
  auto key = options.key.empty() ? NewUlid().ToString() : options.key;
  const auto text = DumpJson(Json{{"key", key}, {"spec", ToJson(prepared->spec)}});
  // A source that is gone on both sides cannot be sent.
  auto accepted = options.current
                      ? PostWithSource(*client, *prepared, ref + "/retry", text, common.home)
                      : client->Post(ref + "/retry", text);
  if (!accepted) return Refuse(accepted.error(), common.json);
  if (options.detach) {
    if (common.json) return PrintJson(*accepted);
    std::printf("%s\n", Text(*accepted, "id").c_str());
    return 0;
  }
  return FollowJob(common, *client, Text(*accepted, "id"), Text(*accepted, "name"));
}

int DiffVerb(const Common& common, const std::vector<std::string>& jobs) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  std::vector<std::string> refs;
  for (const auto& job : jobs) refs.push_back("jobs=" + UrlEncode(job));
  auto body = client->Get("/api/v1/diff?" + Join(refs, "&"));
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  std::vector<std::string> head = {"", ""};
  for (const auto& job : (*body)["jobs"]) head.push_back(Printable(Text(job, "name")));
  Table table(head);
  std::string section;
  for (const auto& row : (*body)["differences"]) {
    std::vector<std::string> cells = {Text(row, "section") == section ? "" : Text(row, "section"),
                                      Printable(Text(row, "key"))};
    section = Text(row, "section");
    for (const auto& value : row["values"]) {
      auto text = Printable(value.get<std::string>());
      cells.push_back(text.empty() ? "-" : text);
    }
    table.Add(std::move(cells), {Ink::kGrey, Ink::kBold});
  }
  if (table.empty()) {
    std::puts("no differences");
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  return 0;
}

namespace {

// "4.2 in 100 h (here: 2 in 47:10:00)", or that nothing is known.
std::string LossRate(const Json& type) {
  const auto held = Number(type, "held_ms");
  if (held <= 0) return "not measured yet";
  const double hours = static_cast<double>(held) / 3.6e6;
  const auto losses = Number(type, "losses");
  // Of less than some hours a rate says nothing.
  if (hours < 10) return fmt::format("here: {} in {}", losses, HumanDuration(Millis(held)));
  return fmt::format("{:.1f} in 100 h (here: {} in {})",
                     100.0 * static_cast<double>(losses) / hours, losses,
                     HumanDuration(Millis(held)));
}

int PrintSpotTypes(const Common& common, const Json& body, const std::string& filter, bool all) {
  Table table({"TYPE", "CPUS", "MEMORY", "$/H", "SPOT $/H", "SAVING", "INTERRUPTED", "PRICE FROM"});
  for (const auto& type : body["types"]) {
    const auto name = Text(type, "name");
    if (!type.contains("spot_micros")) continue;
    if (!filter.empty() ? name.find(filter) == std::string::npos
                        : (!all && !type.value("fits", false))) {
      continue;
    }
    const auto ordinary = Number(type, "on_demand_micros");
    const auto spot = Number(type, "spot_micros");
    table.Add({name, fmt::format("{}", type.value("cpus", 0.0)),
               fmt::format("{:.0f} GiB",
                           static_cast<double>(Number(type, "memory_bytes")) / (1ull << 30)),
               HumanMoney(ordinary), HumanMoney(spot),
               ordinary > 0 ? fmt::format("{:.0f} %", 100.0 * static_cast<double>(ordinary - spot) /
                                                          static_cast<double>(ordinary))
                            : "-",
               LossRate(type), Text(type, "source")},
              {Ink::kBold});
  }
  if (table.empty()) {
    std::puts("no instance type with a spot price fits this machine");
    PrintHint("ath types --spot --all", common.quiet);
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  return 0;
}

}  // namespace

int TypesVerb(const Common& common, const std::string& filter, bool all, bool spot) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/types");
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  if (spot) return PrintSpotTypes(common, *body, filter, all);
  bool simulate = Text(*body, "instances") == "simulate";
  Table table({"TYPE", "CPUS", "MEMORY", "GPUS", "$/H", "SPOT $/H", "HERE"});
  size_t hidden = 0;
  for (const auto& type : (*body)["types"]) {
    auto name = Text(type, "name");
    bool fits = type.value("fits", false);
    if (!filter.empty() ? name.find(filter) == std::string::npos : (!all && !fits)) {
      ++hidden;
      continue;
    }
    std::string gpus = type.value("gpus", 0) > 0
                           ? fmt::format("{}x {}", type.value("gpus", 0), Text(type, "gpu_model"))
                           : "-";
    table.Add(
        {name, fmt::format("{}", type.value("cpus", 0.0)),
         fmt::format("{:.0f} GiB",
                     static_cast<double>(type.value("memory_bytes", uint64_t{0})) / (1ull << 30)),
         gpus, HumanMoney(type.value("on_demand_micros", int64_t{0})),
         type.contains("spot_micros") ? HumanMoney(type.value("spot_micros", int64_t{0})) : "-",
         fits       ? "fits"
         : simulate ? "simulated"
                    : "too large"},
        {Ink::kBold});
  }
  if (!table.empty()) std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  if (hidden > 0 && filter.empty()) {
    PrintHint(fmt::format("{} more types are larger than this machine: ath types --all", hidden),
              common.quiet);
  } else if (table.empty()) {
    std::printf("no type has \"%s\" in its name\n", Printable(filter).c_str());
  }
  return 0;
}

int SecretSetVerb(const Common& common, const std::string& name) {
  auto value = ReadSecretValue(name);
  if (!value) return Refuse(value.error(), common.json);
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  HttpCall call;
  call.method = "PUT";
  call.target = "/api/v1/secrets/" + UrlEncode(name);
  call.headers.Add("Content-Type", "application/octet-stream");
  call.body = *value;
  call.idempotent = true;
  auto reply = client->Do(std::move(call));
  if (!reply) return Refuse(reply.error(), common.json);
  std::printf(common.json ? "{\"name\":\"%s\"}\n" : "stored %s\n", name.c_str());
  if (!common.json)
    PrintHint("ath run -s " + ShellQuote(name) + " -- python train.py", common.quiet);
  return 0;
}

int SecretListVerb(const Common& common) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/secrets");
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  Table table({"SECRET", "UPDATED"});
  for (const auto& secret : (*body)["secrets"]) {
    table.Add({Text(secret, "name"), Text(secret, "updated")});
  }
  if (table.empty()) {
    std::puts("no secrets");
    PrintHint("ath secret set NAME", common.quiet);
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  return 0;
}

int SecretRemoveVerb(const Common& common, const std::string& name) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Send("DELETE", "/api/v1/secrets/" + UrlEncode(name), "");
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  std::printf("removed %s\n", name.c_str());
  return 0;
}

int TokenCreateVerb(const Common& common, const std::string& note, const std::string& scope,
                    const std::string& expires, bool aws) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  Json ask = {{"note", note}, {"scope", scope}};
  if (!expires.empty()) ask["expires_in"] = expires;
  if (aws) ask["kind"] = "aws";
  auto body = client->Post("/api/v1/tokens", DumpJson(ask));
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  if (aws) {
    std::printf("AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n",
                Text(*body, "access_key_id").c_str(), Text(*body, "secret_access_key").c_str());
    PrintHint("the secret is shown only once   ath token revoke " + Text(*body, "id"),
              common.quiet);
    return 0;
  }
  std::printf("%s\n", Text(*body, "token").c_str());
  PrintHint("shown only once: export ATHANOR_TOKEN=...   ath token revoke " + Text(*body, "id"),
            common.quiet);
  return 0;
}

int TokenListVerb(const Common& common) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/tokens");
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  Table table({"TOKEN", "SCOPE", "CREATED", "EXPIRES", "LAST USED", "NOTE"});
  for (const auto& token : (*body)["tokens"]) {
    auto or_dash = [&](const char* key) {
      return Text(token, key).empty() ? "-" : Text(token, key);
    };
    table.Add({Text(token, "id"), token.value("revoked", false) ? "revoked" : Text(token, "scope"),
               or_dash("created"), or_dash("expires"), or_dash("last_used"),
               Printable(Text(token, "note"))});
  }
  if (table.empty()) {
    std::puts("no tokens");
    PrintHint("ath token create --scope submit", common.quiet);
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  return 0;
}

int TokenRevokeVerb(const Common& common, const std::string& id) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Send("DELETE", "/api/v1/tokens/" + UrlEncode(id), "");
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  std::printf("revoked %s\n", id.c_str());
  return 0;
}

}  // namespace athanor
