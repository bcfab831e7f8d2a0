// wait, server status: waiting for something, or looking at the server.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/refuse.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "net/sse.h"

namespace athanor {

int WaitVerb(const Common& common, const std::vector<std::string>& jobs,
             const std::string& timeout) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  Millis limit = std::chrono::hours(24 * 365);
  if (!timeout.empty()) {
    auto parsed = ParseDuration(timeout);
    if (!parsed) return Refuse(parsed.error(), common.json);
    limit = *parsed;
  }
  SystemClock clock;
  auto deadline = clock.Monotonic() + limit;
  int status = 0;
  for (const auto& job : jobs) {
    std::optional<Json> end;
    int failures = 0;
    while (!end) {
      HttpCall call;
      call.target = "/api/v1/jobs/" + UrlEncode(job) + "/stream?phase=none";
      call.read_timeout = std::max(Millis(1), deadline - clock.Monotonic());
      SseParser parser;
      call.on_body = [&](std::string_view bytes) {
        auto fed = parser.Feed(bytes, [&](const SseEvent& event) {
          if (event.event == "end") {
            if (auto data = ParseJson(event.data)) end = std::move(*data);
          }
          return !end;
        });
        return fed.ok() && !end && clock.Monotonic() < deadline;
      };
      auto reply = client->Do(std::move(call));
      if (end) break;
      if (clock.Monotonic() >= deadline) {
        Error error{ErrorCode::kTimeout, job + " has not ended yet", "ath logs -f " + ShellQuote(job), "", "ATH-C0013", ""};
        return Refuse(error, common.json);
      }
      // A server that restarts is no reason to give up; one that says no is.
      if (!reply && (!RowOf(reply.error().code).retry || ++failures > 100)) {
        return Refuse(reply.error(), common.json);
      }
      ::usleep(100'000);
    }
    if (common.json) {
      Json line = {{"id", end->value("id", "")}, {"name", end->value("name", "")},
                   {"state", end->value("state", "")}, {"exit", ExitStatusOf(*end)}};
      if (end->contains("cause")) line["cause"] = (*end)["cause"];
      std::printf("%s\n", DumpJson(line).c_str());
    } else {
      std::printf("%s %s\n", end->value("name", "").c_str(), end->value("state", "").c_str());
    }
    if (status == 0) status = ExitStatusOf(*end);
  }
  return status;
}

int ServerStatusVerb(const Common& common) {
  auto client = Client::Connect(common.home, false);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/server");
  if (!body) {
    Error error = body.error();
    if (error.code == ErrorCode::kUnavailable && !client->remote()) {
      error.what = "no server is running for " + common.home.root;
      error.hint = "ath serve        runs one in the foreground; other commands start one automatically";
    }
    return Refuse(error, common.json);
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
  const auto& machine = (*body)["machine"];
  std::printf("  machine  %g CPUs, %s for jobs, %d GPUs\n",
              machine.value("cpu_millis", 0) / 1000.0,
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
