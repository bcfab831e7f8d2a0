// interrupt, checkpoints, resume: jobs whose machine is taken away, and how they continue.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/ids.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"

namespace athanor {

int InterruptVerb(const Common& common, const std::vector<std::string>& jobs,
                  const std::string& grace) {
  std::string query;
  if (!grace.empty()) {
    auto parsed = ParseDuration(grace);
    if (!parsed) return Refuse(parsed.error(), common.json);
    query = "?grace_ms=" + std::to_string(parsed->count());
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  int status = 0;
  for (const auto& job : jobs) {
    auto body = client->Post("/api/v1/jobs/" + UrlEncode(job) + "/interrupt" + query);
    if (!body) {
      status = Refuse(body.error(), common.json);
    } else if (common.json) {
      PrintJson(*body);
    } else {
      auto name = Text(*body, "name");
      std::printf("%s is being interrupted\n", name.c_str());
      PrintHint("ath show " + ShellQuote(name) + " · ath events " + ShellQuote(name), common.quiet);
    }
  }
  return status;
}

int CheckpointsVerb(const Common& common, const std::string& job) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/jobs/" + UrlEncode(job) + "/checkpoints");
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  Table table({"CHECKPOINT", "STEP", "KEPT", "FILES", "SIZE", "NEW", "SAVE", "SYNC"});
  for (const auto& one : (*body)["checkpoints"]) {
    auto bytes = [&](const char* key) {
      return HumanBytes(static_cast<uint64_t>(Number(one, key)));
    };
    table.Add({Text(one, "id"), one.contains("step") ? std::to_string(Number(one, "step")) : "-",
               Ago(TimeOf(one, "at")), std::to_string(Number(one, "files")), bytes("bytes"),
               bytes("new_bytes"),
               Number(one, "save_ms") > 0 ? HumanDuration(Millis(Number(one, "save_ms"))) : "-",
               HumanDuration(Millis(Number(one, "sync_ms")))},
              {Ink::kBold});
  }
  for (const auto& one : (*body)["damaged"]) {
    std::fprintf(stderr, "  %s is damaged: %s\n", Text(one, "id").c_str(),
                 Printable(Text(one, "why")).c_str());
  }
  if (table.empty()) {
    std::puts("no complete checkpoints");
    PrintHint("write to $SM_CHECKPOINT_DIR, or call athanor.checkpoint(step, save)", common.quiet);
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  PrintHint("ath resume " + ShellQuote(job) + " --from STEP", common.quiet);
  return 0;
}

int ResumeVerb(const Common& common, const std::string& job, const std::string& from, bool detach) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body =
      client->Post("/api/v1/jobs/" + UrlEncode(job) + "/resume?key=" + NewUlid().ToString() +
                   (from.empty() ? "" : "&from=" + UrlEncode(from)));
  if (!body) return Refuse(body.error(), common.json);
  if (detach) {
    if (common.json) return PrintJson(*body);
    std::printf("%s (%s) resumes from %s\n", Text(*body, "name").c_str(), Text(*body, "id").c_str(),
                job.c_str());
    PrintHint("ath logs -f " + Text(*body, "id"), common.quiet);
    return 0;
  }
  return FollowJob(common, *client, Text(*body, "id"), Text(*body, "name"));
}

}  // namespace athanor
