// gc: removes blobs of no job, and caches that were not used for long.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"

namespace athanor {
namespace {

constexpr Millis kLongestSweep{24 * 3600 * 1000};  // it says nothing until it is done

}  // namespace

int GcVerb(const Common& common, bool dry_run, const std::string& older) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  HttpCall call;
  call.method = "POST";
  call.target = std::string("/api/v1/gc?dry_run=") + (dry_run ? "true" : "false");
  if (!older.empty()) call.target += "&older=" + UrlEncode(older);
  call.read_timeout = kLongestSweep;
  auto reply = client->Do(std::move(call));
  if (!reply) return Refuse(reply.error(), common.json);
  auto swept = ParseJson(reply->body);
  if (!swept) return Refuse(swept.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(*swept).c_str());
    return 0;
  }
  Table table({"", dry_run ? "TO REMOVE" : "REMOVED", "SIZE", "KEPT"});
  for (const char* part : {"blobs", "environments", "sources", "trash"}) {
    const auto& row = (*swept)[part];
    table.Add({part, std::to_string(Number(row, "removed")),
               HumanBytes(static_cast<uint64_t>(Number(row, "bytes"))),
               std::to_string(Number(row, "kept"))});
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  std::printf("%s %s\n", HumanBytes(static_cast<uint64_t>(Number(*swept, "bytes"))).c_str(),
              dry_run ? "would be freed" : "freed");
  if (dry_run) PrintHint("ath gc", common.quiet);
  return 0;
}

}  // namespace athanor
