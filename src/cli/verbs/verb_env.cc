// ath env: what a shell needs so that unmodified programs (MLflow's, AWS's) reach this server.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "link/aws_environment.h"

namespace athanor {
namespace {

constexpr char kSaved[] = "ATHANOR_OLD_";

// Credentials for another server, which this one would refuse.
constexpr const char* kMlflowInTheWay[] = {"MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME",
                                           "MLFLOW_TRACKING_PASSWORD"};

using Variables = std::map<std::string, std::string>;

std::string Environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

// The key that was made for this user before, if the server still knows it.
Result<std::optional<AwsKey>> KeptKey(Client& client, const std::string& path) {
  const auto text = ReadFile(path, 64 << 10);
  if (!text) return std::optional<AwsKey>();
  const auto kept = ParseJson(*text);
  if (!kept || !kept->is_object()) return std::optional<AwsKey>();
  const AwsKey pair{Text(*kept, "access_key_id"), Text(*kept, "secret_access_key")};
  ATHANOR_TRY(const auto known, client.Get("/api/v1/tokens"));
  for (const auto& token : known["tokens"]) {
    if (Text(token, "id") == pair.id && !token.value("revoked", false)) {
      return std::optional<AwsKey>(pair);
    }
  }
  return std::optional<AwsKey>();
}

Result<AwsKey> KeyFor(Client& client, const std::string& path) {
  ATHANOR_TRY(auto kept, KeptKey(client, path));
  if (kept) return *kept;
  const Json ask = {{"kind", "aws"}, {"scope", "submit"}, {"note", "ath env aws"}};
  ATHANOR_TRY(const auto made, client.Post("/api/v1/tokens", DumpJson(ask)));
  const AwsKey pair{Text(made, "access_key_id"), Text(made, "secret_access_key")};
  const Json keep = {{"access_key_id", pair.id}, {"secret_access_key", pair.secret}};
  ATHANOR_CHECK_OK(WriteFileAtomic(path, DumpJson(keep) + "\n", 0600));
  return pair;
}

// What the shell had before the first of us; also when that was nothing.
std::string Before(const std::string& name) {
  return std::getenv((kSaved + name).c_str()) ? Environment(kSaved + name) : Environment(name);
}

// A proxy of the user's cannot reach this machine's own address.
void AddNoProxy(Variables& all) {
  const bool proxied = !Environment("http_proxy").empty() || !Environment("HTTP_PROXY").empty() ||
                       !Environment("https_proxy").empty() || !Environment("HTTPS_PROXY").empty();
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const std::string before = Before(name);
    if (proxied && before.find("127.0.0.1") == std::string::npos) {
      all[name] = before + (before.empty() ? "" : ",") + "127.0.0.1,localhost";
    }
  }
}

Variables VariablesFor(const std::string& url, const std::string& dir, const AwsKey& key) {
  Variables all = AwsVariables(url, dir, key);
  // Other models of the user stay in place after ours.
  if (const auto models = Before("AWS_DATA_PATH"); !models.empty()) {
    all["AWS_DATA_PATH"] += ":" + models;
  }
  return all;
}

// Of which program a variable is; "" for those that several need.
std::string KindOf(std::string_view name) {
  if (StartsWith(name, "MLFLOW_")) return "mlflow";
  return name == "no_proxy" || name == "NO_PROXY" ? "" : "aws";
}

// The old value of each changed variable is stored under another name, so that --unset, which may
// run much later, knows what to restore.
void PrintExports(const Variables& all, const std::string& kind) {
  const auto save = [&](const std::string& name) {
    if (std::getenv((kSaved + name).c_str())) return;
    std::printf("export %s%s=%s\n", kSaved, name.c_str(), ShellQuote(Environment(name)).c_str());
  };
  const auto clear = [&](const char* name) {
    save(name);
    std::printf("unset %s\n", name);
  };
  if (kind != "mlflow") std::ranges::for_each(kAwsInTheWay, clear);
  if (kind != "aws") std::ranges::for_each(kMlflowInTheWay, clear);
  for (const auto& [name, value] : all) {
    save(name);
    std::printf("export %s=%s\n", name.c_str(), ShellQuote(value).c_str());
  }
}

// Nothing, where nothing was set by us.
void PrintUndo(const std::string& kind) {
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view pair = *entry;
    const auto equal = pair.find('=');
    if (!StartsWith(pair, kSaved) || equal == std::string_view::npos) continue;
    const std::string saved(pair.substr(0, equal));
    const std::string name = saved.substr(std::string_view(kSaved).size());
    const std::string old(pair.substr(equal + 1));
    // The name is put into a shell's mouth, so only what we write ourselves counts.
    const bool plain = std::all_of(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (name.empty() || !plain) continue;
    if (!kind.empty() && !KindOf(name).empty() && KindOf(name) != kind) continue;
    if (old.empty()) {
      std::printf("unset %s %s\n", name.c_str(), saved.c_str());
    } else {
      std::printf("export %s=%s\nunset %s\n", name.c_str(), ShellQuote(old).c_str(), saved.c_str());
    }
  }
}

Result<Variables> Made(const Home& home, const std::string& kind) {
  ATHANOR_TRY(auto client, Client::Connect(home));
  ATHANOR_TRY(const auto server, client.Get("/api/v1/server"));
  const std::string url = Text(server, "url");
  Variables all;
  if (kind != "mlflow") {
    const std::string dir = home.aws();
    ATHANOR_CHECK_OK(MakeDirs(dir));
    ATHANOR_TRY(const auto key, KeyFor(client, dir + "/key.json"));
    ATHANOR_CHECK_OK(WriteAwsOverlay(dir, url));
    all = VariablesFor(url, dir, key);
  }
  if (kind != "aws") {
    const std::string where = client.remote() ? client.address() : url;
    // The registry too: MLflow would look for models where another variable leads.
    for (const char* name : {"MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"}) all[name] = where;
    const auto token = Environment("ATHANOR_TOKEN");
    if (client.remote() && !token.empty()) all["MLFLOW_TRACKING_TOKEN"] = token;
  }
  AddNoProxy(all);
  return all;
}

}  // namespace

int EnvVerb(const Common& common, const std::string& kind, bool unset) {
  if (unset) {
    PrintUndo(kind);
    return 0;
  }
  auto made = Made(common.home, kind);
  if (!made) return Refuse(made.error(), common.json);
  if (common.json) {
    Json out = Json::object();
    for (const auto& [name, value] : *made) out[name] = value;
    std::printf("%s\n", DumpJson(out).c_str());
    return 0;
  }
  PrintExports(*made, kind);
  const std::string verb = kind.empty() ? "ath env" : "ath env " + kind;
  PrintHint("for this shell: eval \"$(" + verb + ")\"   to undo: eval \"$(" + verb + " --unset)\"",
            common.quiet);
  return 0;
}

}  // namespace athanor
