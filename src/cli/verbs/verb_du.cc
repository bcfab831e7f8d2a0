// du: what uses the disk, job by job and what they share.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/pages.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"

namespace athanor {
namespace {

std::string Size(const Json& json, const char* key) {
  return HumanBytes(static_cast<uint64_t>(Number(json, key)));
}

}  // namespace

int DuVerb(const Common& common, const DuOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  HttpCall call;
  call.target = "/api/v1/server/disk";
  call.read_timeout = std::chrono::hours(1);  // it looks at every file
  const auto reply = client->Do(std::move(call));
  if (!reply) return Refuse(reply.error(), common.json);
  const auto body = ParseJson(reply->body);
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  const Json& jobs = (*body)["jobs"];
  const size_t limit = options.all ? jobs.size() : options.limit;
  Table table({"JOB", "ID", "TOTAL", "LOGS", "METRICS", "CHECKPOINTS", "OUTPUTS", "SCRATCH"});
  uint64_t of_jobs = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Json& job = jobs[i];
    of_jobs += static_cast<uint64_t>(Number(job, "bytes"));
    if (i >= limit) continue;
    const auto id = Text(job, "id");
    table.Add({Printable(Text(job, "name")), id.substr(id.size() - 6), Size(job, "bytes"),
               Size(job, "logs"), Size(job, "metrics"), Size(job, "checkpoints"),
               Size(job, "outputs"), Size(job, "scratch")},
              {Ink::kBold, Ink::kGrey});
  }
  const Terminal terminal = DetectTerminal();
  if (!table.empty()) std::printf("%s\n", table.Format(terminal).c_str());
  SayMore(std::min(limit, jobs.size()), jobs.size(), "jobs", "ath du -a", common.quiet);
  Table parts({"", "SIZE"});
  parts.Add(
      {jobs.size() == 1 ? "1 job" : fmt::format("{} jobs", jobs.size()), HumanBytes(of_jobs)});
  for (const auto& part : (*body)["shared"]) parts.Add({Text(part, "name"), Size(part, "bytes")});
  parts.Add({"total", Size(*body, "bytes")}, {Ink::kBold, Ink::kBold});
  std::fputs(parts.Format(terminal).c_str(), stdout);
  std::printf("%s\n",
              (Printable(Text(*body, "home")) +
               (body->contains("free_bytes") ? ", " + Size(*body, "free_bytes") + " free" : ""))
                  .c_str());
  PrintHint("ath rm --older-than 30d · ath gc", common.quiet);
  return 0;
}

}  // namespace athanor
