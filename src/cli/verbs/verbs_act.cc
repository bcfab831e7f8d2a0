// wait, version.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/text.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/lost_server.h"
#include "cli/screen/output.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "net/http/sse.h"
#include "serve/version.h"

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
    LostServer lost(*client, job, common.quiet || common.json);
    while (!end) {
      HttpCall call;
      call.target = "/api/v1/jobs/" + UrlEncode(job) + "/stream?phase=none";
      call.read_timeout = std::max(Millis(1), deadline - clock.Monotonic());
      SseParser parser;
      call.on_body = [&](std::string_view bytes) {
        lost.Answered();
        auto fed = parser.Feed(bytes, [&](const SseEvent& event) {
          if (event.event == "end") {
            if (auto data = ParseJson(event.data)) end = std::move(*data);
          }
          return !end;
        });
        return fed.ok() && !end && clock.Monotonic() < deadline;
      };
      auto reply = clock.Monotonic() < deadline
                       ? client->Do(std::move(call))
                       : Result<HttpReply>(Fail(ErrorCode::kTimeout, "the time is up"));
      if (end) break;
      if (clock.Monotonic() >= deadline) {
        return Refuse(
            Error{ErrorCode::kTimeout, job + " has not ended yet", "ath logs -f " + ShellQuote(job)}
                .Id("ATH-C0013"),
            common.json);
      }
      // A restarting server is no reason to give up; a refusal is.
      const Error why =
          reply ? Error{ErrorCode::kUnavailable, "the server keeps closing the connection"}
                : reply.error();
      const auto again = lost.Wait(why, -1, deadline);
      if (!again && again.error().code != ErrorCode::kTimeout) {
        return Refuse(again.error(), common.json);
      }
    }
    if (common.json) {
      Json line = {{"id", end->value("id", "")},
                   {"name", end->value("name", "")},
                   {"state", end->value("state", "")},
                   {"exit", ExitStatusOf(*end)}};
      if (end->contains("cause")) line["cause"] = (*end)["cause"];
      std::printf("%s\n", DumpJson(line).c_str());
    } else {
      std::printf("%s %s\n", end->value("name", "").c_str(), end->value("state", "").c_str());
    }
    if (status == 0) status = ExitStatusOf(*end);
  }
  return status;
}

}  // namespace athanor
