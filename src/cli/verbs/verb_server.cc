// ath server start, ath server status.
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/service.h"
#include "cli/verbs/verbs.h"
#include "link/server_record.h"

namespace athanor {
namespace {

std::string StartedText(const ServerRecord& record) {
  switch (record.by) {
    case StartedBy::kCommand:
      return "a command, in the background";
    case StartedBy::kHand:
      return "hand: " + record.again;
    case StartedBy::kService:
      return "its service";
  }
  return "";
}

// Where its messages are: a file, or what shows them.
std::string LogOf(const Home& home, const ServerRecord& record) {
  switch (record.by) {
    case StartedBy::kCommand:
      return home.server_log();
    case StartedBy::kHand:
      return "the terminal of ath serve";
    case StartedBy::kService:
      break;
  }
  const auto service = ServiceOf(home);
  if (!service) return "journalctl";
  return std::string("journalctl ") +
         (StartsWith(service->mark, "user/") ? "--user-unit " : "-u ") + BaseName(service->file);
}

}  // namespace

int ServerStartVerb(const Common& common) {
  auto client = Client::ConnectHere(common.home, false);
  if (!client) return Refuse(client.error(), common.json);
  const bool runs = client->Reachable();
  if (!runs) {
    if (auto started = client->StartHere(true); !started) {
      return Refuse(started.error(), common.json);
    }
  }
  auto server = client->Get("/api/v1/server");
  if (!server) return Refuse(server.error(), common.json);
  const auto url = Text(*server, "url");
  if (common.json) return PrintJson({{"started", !runs}, {"url", url}, {"pid", (*server)["pid"]}});
  std::printf("%s %s\n", runs ? "the server already runs at" : "the server runs at", url.c_str());
  return 0;
}

int ServerStatusVerb(const Common& common) {
  auto client = Client::Connect(common.home, false);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/server");
  if (!body) {
    Error error = body.error();
    if (error.code == ErrorCode::kUnavailable && !client->remote()) {
      error.what = "no server is running for " + common.home.root;
      error.hint = "ath server start    other commands start one automatically";
      if (const auto record = ReadServerRecord(common.home.root)) {
        error.why = "it has died; it was started by " + StartedText(*record);
        if (record->by != StartedBy::kCommand) error.hint = record->again;
      }
    }
    return Refuse(error, common.json);
  }
  const auto record = client->remote() ? std::nullopt : ReadServerRecord(common.home.root);
  if (record) {
    (*body)["started_by"] = NameOf(record->by);
    (*body)["log"] = LogOf(common.home, *record);
  }
  if (common.json) {
    std::printf("%s\n", DumpJson(*body).c_str());
    return 0;
  }
  std::printf("athanor %s  pid %ld  up %s\n", body->value("version", "").c_str(),
              static_cast<long>(body->value("pid", 0)),
              HumanDuration(Millis(body->value("uptime_ms", int64_t{0}))).c_str());
  std::printf("  url      %s\n  socket   %s\n  home     %s\n", body->value("url", "").c_str(),
              body->value("socket", "").c_str(), body->value("home", "").c_str());
  if (body->contains("agents")) {
    std::printf("  agents   %s   for agents on other machines\n",
                body->value("agents", "").c_str());
  }
  std::printf("  started  %s%s\n", Local(TimeOf(*body, "started")).c_str(),
              record ? (" by " + StartedText(*record)).c_str() : "");
  if (record) std::printf("  log      %s\n", LogOf(common.home, *record).c_str());
  const auto& machine = (*body)["machine"];
  std::printf("  machine  %g CPUs, %s for jobs, %d GPUs\n", machine.value("cpu_millis", 0) / 1000.0,
              HumanBytes(machine.value("memory_bytes", uint64_t{0})).c_str(),
              machine.value("gpus", 0));
  std::string states;
  for (const auto& [state, count] : (*body)["states"].items()) {
    states += (states.empty() ? "" : ", ") + std::to_string(count.get<int>()) + " " + state;
  }
  std::printf("  jobs     %s\n", states.empty() ? "none" : states.c_str());
  if (body->contains("waits_for_disk")) {
    const auto& disk = (*body)["waits_for_disk"];
    std::printf("  disk     full: %s free, %s needed; changes wait until there is space\n",
                HumanBytes(disk.value("free_bytes", uint64_t{0})).c_str(),
                HumanBytes(disk.value("wanted_bytes", uint64_t{0})).c_str());
  }
  if (const auto notices = body->find("notices"); notices != body->end()) {
    for (const auto& notice : *notices) {
      std::printf("  notice   %s\n", notice.get<std::string>().c_str());
    }
  }
  return 0;
}

}  // namespace athanor
