#include "cli/screen/pages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"

namespace athanor {
namespace {

// Of one answer; the server gives no more, of jobs at most five times as many.
constexpr size_t kJobsAtOnce = 2'000;
constexpr size_t kRunsAtOnce = 10'000;
constexpr size_t kWaitingAtOnce = 1'000;

// "100,007"
std::string Grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace

// A hundred thousand rows are passed on as text: only what follows them is parsed.
Result<JobRows> FetchJobs(Client& client, const std::string& filter, size_t limit) {
  constexpr std::string_view kHead = "{\"jobs\":[";
  JobRows all;
  std::string before;
  while (true) {
    const size_t want = std::min(kJobsAtOnce, limit - all.shown);
    ATHANOR_TRY(std::string page,
                client.GetText(fmt::format("/api/v1/jobs?limit={}{}{}", want, filter,
                                           before.empty() ? "&count=true" : "&before=" + before)));
    const size_t end = page.rfind(']');
    if (!StartsWith(page, kHead) || end == std::string::npos) {
      return Fail(ErrorCode::kBug, "the server's list of jobs is not understood");
    }
    const std::string tail = page.substr(end + 1);
    ATHANOR_TRY(const Json rest, ParseJson("{" + tail.substr(tail.find_first_not_of(','))));
    if (before.empty()) all.matched = static_cast<uint64_t>(Number(rest, "matched"));
    page.resize(end);
    page.erase(0, kHead.size());
    if (!page.empty()) all.rows += (all.rows.empty() ? "" : ",") + page;
    before = Text(rest, "next");
    // Those that came or went meanwhile are not counted twice.
    if (before.empty()) {
      all.shown = static_cast<size_t>(all.matched);
      return all;
    }
    all.shown += want;
    if (all.shown >= limit) return all;
  }
}

Result<Json> FetchRuns(Client& client, const std::string& query, size_t limit) {
  Json all;
  for (std::string after;;) {
    const size_t have = all.is_null() ? 0 : all["runs"].size();
    const size_t want = std::min(kRunsAtOnce, limit - have);
    ATHANOR_TRY(Json page,
                client.Get(fmt::format("/api/v1/runs?limit={}{}{}", want, query,
                                       after.empty() ? "" : "&after=" + UrlEncode(after))));
    after = Text(page, "next");
    page.erase("next");
    if (all.is_null()) {
      all = std::move(page);
    } else {
      for (auto& run : page["runs"]) all["runs"].push_back(std::move(run));
    }
    if (after.empty() || all["runs"].size() >= limit) return all;
  }
}

Result<Json> FetchQueue(Client& client, size_t limit) {
  Json all;
  std::string after;
  while (true) {
    const size_t have = all.is_null() ? 0 : all["waiting"].size();
    const size_t want = std::min(kWaitingAtOnce, limit - have);
    ATHANOR_TRY(Json page,
                client.Get(fmt::format("/api/v1/queue?limit={}{}", want,
                                       after.empty() ? "" : "&after=" + UrlEncode(after))));
    after = Text(page, "next");
    if (all.is_null()) {
      all = std::move(page);
      all.erase("next");
    } else {
      for (auto& one : page["waiting"]) all["waiting"].push_back(std::move(one));
    }
    if (after.empty() || all["waiting"].size() >= limit) return all;
  }
}

void SayMore(size_t shown, uint64_t matched, const char* things, const std::string& command,
             bool quiet) {
  if (matched <= shown) return;
  PrintHint(fmt::format("{} of {} {}; all of them: {}", Grouped(shown), Grouped(matched), things,
                        command),
            quiet);
}

}  // namespace athanor
