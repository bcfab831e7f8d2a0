// queue: who waits, in which order, and for what.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/pages.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"

namespace athanor {

int QueueVerb(const Common& common, const ListOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = FetchQueue(*client, options.all ? kAllPages : options.limit);
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  const Json& waiting = (*body)["waiting"];
  if (waiting.empty()) {
    std::puts("no jobs are waiting");
    PrintHint("ath ps", common.quiet);
    return 0;
  }
  Table table({"#", "JOB", "ID", "WAITED", "STARTS WITHIN", "REASON"});
  const int64_t now = SystemClock().Wall().ms;
  for (const auto& one : waiting) {
    const std::string id = Text(one["job"], "id");
    const auto waits = Millis(std::max<int64_t>(now - Number(one, "since_ms"), 0));
    table.Add(
        {std::to_string(Number(one, "position")), Printable(Text(one["job"], "name")),
         id.substr(id.size() - 6), HumanDuration(waits),
         one["estimate_ms"].is_null() ? "-" : HumanDuration(Millis(Number(one, "estimate_ms"))),
         Printable(Text(one, "reason"))},
        {Ink::kGrey, Ink::kBold, Ink::kGrey});
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  SayMore(waiting.size(), static_cast<uint64_t>(Number(*body, "matched")), "waiting jobs",
          "ath queue -a", common.quiet);
  return 0;
}

}  // namespace athanor
