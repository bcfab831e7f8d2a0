// rm: deletes jobs that ended, by name or all that fit.
#include <algorithm>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
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

constexpr size_t kAtOnce = 500;
constexpr Millis kLongestRemoval = std::chrono::minutes(10);

int RemoveNamed(const Common& common, Client& client, const std::vector<std::string>& jobs) {
  int status = 0;
  for (const auto& job : jobs) {
    auto body = client.Send("DELETE", "/api/v1/jobs/" + UrlEncode(job), "");
    if (!body) {
      status = Refuse(body.error(), common.json);
    } else if (common.json) {
      PrintJson(*body);
    } else {
      std::printf("removed %s\n", Text(*body, "removed").c_str());
    }
  }
  return status;
}

Result<Json> Call(Client& client, const char* method, const std::string& target, std::string body) {
  HttpCall call;
  call.method = method;
  call.target = target;
  if (!body.empty()) call.headers.Add("Content-Type", "application/json");
  call.body = std::move(body);
  call.read_timeout = kLongestRemoval;
  ATHANOR_TRY(const auto reply, client.Do(std::move(call)));
  return ParseJson(reply.body);
}

// What the jobs take of the disk.
Result<uint64_t> BytesOf(Client& client, const Json& rows) {
  ATHANOR_TRY(const Json disk, Call(client, "GET", "/api/v1/server/disk?only=jobs", ""));
  std::map<std::string, uint64_t> bytes;
  for (const auto& job : disk["jobs"])
    bytes[Text(job, "id")] = static_cast<uint64_t>(Number(job, "bytes"));
  uint64_t sum = 0;
  for (const auto& row : rows) sum += bytes[Text(row, "id")];
  return sum;
}

struct Removed {
  uint64_t count = 0;
  Json refused = Json::array();
};

Result<Removed> RemoveAll(Client& client, const Json& rows) {
  Removed removed;
  for (size_t begin = 0; begin < rows.size(); begin += kAtOnce) {
    Json ids = Json::array();
    for (size_t i = begin; i < std::min(begin + kAtOnce, rows.size()); ++i) {
      ids.push_back(rows[i]["id"]);
    }
    ATHANOR_TRY(const Json body,
                Call(client, "POST", "/api/v1/remove", DumpJson(Json{{"jobs", ids}})));
    removed.count += static_cast<uint64_t>(Number(body, "removed"));
    for (const auto& one : body["refused"]) removed.refused.push_back(one);
  }
  return removed;
}

int Print(const Common& common, const Json& rows, uint64_t bytes, bool dry_run,
          const Removed& removed) {
  if (common.json) {
    return PrintJson({{"matched", rows.size()},
                      {"bytes", bytes},
                      {"dry_run", dry_run},
                      {"removed", removed.count},
                      {"refused", removed.refused},
                      {"jobs", rows}});
  }
  if (dry_run) {
    std::printf("%swould delete %s (%s)\n", PreviewText(rows, rows.size()).c_str(),
                Counted(rows.size(), "job").c_str(), HumanBytes(bytes).c_str());
    return 0;
  }
  std::printf("deleted %s (%s)\n", Counted(removed.count, "job").c_str(),
              HumanBytes(bytes).c_str());
  return 0;
}

int RemoveChosen(const Common& common, Client& client, const RemoveOptions& options) {
  const auto found = FetchJobs(client, QueryOf(options.pick) + "&ended=true", kAllPages);
  if (!found) return Refuse(found.error(), common.json);
  const auto rows = ParseJson("[" + found->rows + "]");
  if (!rows) return Refuse(rows.error(), common.json);
  if (rows->empty()) {
    if (common.json) return Print(common, *rows, 0, options.dry_run, {});
    std::puts("no matching jobs that have ended");
    return 0;
  }
  const auto bytes = BytesOf(client, *rows);
  if (!bytes) return Refuse(bytes.error(), common.json);
  if (options.dry_run) return Print(common, *rows, *bytes, true, {});
  if (!options.yes) {
    const auto confirmed = IsConfirmed(
        PreviewText(*rows, rows->size()),
        fmt::format("Delete {} ({})?", Counted(rows->size(), "job"), HumanBytes(*bytes)),
        "ath rm" + FlagsOf(options.pick));
    if (!confirmed) return Refuse(confirmed.error(), common.json);
    if (!*confirmed) {
      std::fputs("  nothing was deleted\n", stderr);
      return 1;
    }
  }
  const auto removed = RemoveAll(client, *rows);
  if (!removed) return Refuse(removed.error(), common.json);
  Print(common, *rows, *bytes, false, *removed);
  if (!common.json)
    PrintHint("to free the space of their outputs and sources: ath gc", common.quiet);
  if (removed->refused.empty()) return 0;
  const auto& first = removed->refused[0];
  if (common.json) return 1;
  return Refuse(
      Error{ErrorCode::kConflict, Counted(removed->refused.size(), "job") + " could not be deleted",
            "ath ps" + FlagsOf(options.pick)}
          .Why(Text(first, "what"))
          .Id("ATH-R0005"),
      false);
}

}  // namespace

int RmVerb(const Common& common, RemoveOptions options) {
  TakePattern(options.jobs, options.pick);
  if (options.pick.chooses() != options.jobs.empty()) {
    return Refuse(
        Error{ErrorCode::kInvalid,
              options.pick.chooses() ? "give either jobs or options that select them, not both"
                                     : "no jobs given",
              "ath rm JOB\nath rm 'lr-*'\nath rm --state failed\nath rm --older-than 30d\n"
              "ath rm --tag KEY=VALUE"}
            .Id("ATH-C0010"),
        common.json);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  return options.pick.chooses() ? RemoveChosen(common, *client, options)
                                : RemoveNamed(common, *client, options.jobs);
}

}  // namespace athanor
