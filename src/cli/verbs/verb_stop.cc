// stop: jobs by name, or all that fit.
#include <cstdio>
#include <string>

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

// A hundred thousand jobs are stopped in some seconds; on a slow disk in minutes.
constexpr Millis kLongestStop = std::chrono::minutes(10);
constexpr size_t kShown = 20;  // of those that are asked about

int StopNamed(const Common& common, Client& client, const StopOptions& options) {
  int status = 0;
  for (const auto& job : options.jobs) {
    auto body = client.Post("/api/v1/jobs/" + UrlEncode(job) + "/stop" +
                            (options.now ? "?grace_ms=0" : ""));
    if (!body) {
      status = Refuse(body.error(), common.json);
    } else if (common.json) {
      std::printf("%s\n", DumpJson(*body).c_str());
    } else {
      const auto state = Text(*body, "state");
      const bool over = state == "Completed" || state == "Failed" || state == "Stopped";
      std::printf("%s %s\n", Text(*body, "name").c_str(), over ? state.c_str() : "is stopping");
    }
  }
  return status;
}

Result<Json> AskMany(Client& client, const StopOptions& options, bool dry_run) {
  Json ask = Json::object();
  const auto& pick = options.pick;
  if (pick.all) ask["all"] = true;
  if (!pick.state.empty()) ask["state"] = pick.state;
  if (!pick.experiment.empty()) ask["experiment"] = pick.experiment;
  if (!pick.name.empty()) ask["name"] = pick.name;
  if (!pick.older.empty()) ask["older"] = pick.older;
  if (!pick.tags.empty()) ask["tags"] = pick.tags;
  if (options.now) ask["grace_ms"] = 0;
  if (dry_run) ask["dry_run"] = true;
  HttpCall call;
  call.method = "POST";
  call.target = "/api/v1/stop";
  call.headers.Add("Content-Type", "application/json");
  call.body = DumpJson(ask);
  call.read_timeout = kLongestStop;
  ATHANOR_TRY(const auto reply, client.Do(std::move(call)));
  return ParseJson(reply.body);
}

// "3 jobs (2 waiting, 1 with a machine)"
std::string CountsText(const Json& counts) {
  const auto waiting = static_cast<uint64_t>(Number(counts, "stopped"));
  const auto running = static_cast<uint64_t>(Number(counts, "stopping"));
  std::string text = Counted(waiting + running, "job");
  if (waiting > 0 && running > 0)
    text += fmt::format(" ({} waiting, {} running)", waiting, running);
  return text;
}

// Shows what would be stopped and asks, unless that is nothing.
Result<bool> Ask(Client& client, const StopOptions& options) {
  ATHANOR_TRY(const auto counts, AskMany(client, options, true));
  const auto matched = static_cast<uint64_t>(Number(counts, "matched"));
  if (matched == 0) return true;
  ATHANOR_TRY(const auto jobs, FetchJobs(client, QueryOf(options.pick) + "&live=true", kShown));
  ATHANOR_TRY(const Json rows, ParseJson("[" + jobs.rows + "]"));
  return IsConfirmed(PreviewText(rows, matched), "Stop " + CountsText(counts) + "?",
                     "ath stop" + FlagsOf(options.pick));
}

}  // namespace

int StopVerb(const Common& common, StopOptions options) {
  TakePattern(options.jobs, options.pick);
  const bool chosen = options.pick.chooses();
  if (chosen != options.jobs.empty()) {
    return Refuse(
        Error{ErrorCode::kInvalid,
              chosen ? "give either jobs or options that select them, not both" : "no jobs given",
              "ath stop JOB\nath stop 'lr-*'\nath stop --state queued\n"
              "ath stop --experiment NAME\nath stop --tag KEY=VALUE\nath stop --all"}
            .Id("ATH-C0010"),
        common.json);
  }
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  if (!chosen) return StopNamed(common, *client, options);
  if (!options.yes && !options.dry_run) {
    const auto confirmed = Ask(*client, options);
    if (!confirmed) return Refuse(confirmed.error(), common.json);
    if (!*confirmed) {
      std::fputs("  nothing was stopped\n", stderr);
      return 1;
    }
  }
  auto counts = AskMany(*client, options, options.dry_run);
  if (!counts) return Refuse(counts.error(), common.json);
  if (common.json) return PrintJson(*counts);
  const auto stopped = static_cast<uint64_t>(Number(*counts, "stopped"));
  const auto stopping = static_cast<uint64_t>(Number(*counts, "stopping"));
  if (stopped + stopping == 0) {
    std::puts("no matching jobs");
  } else if (options.dry_run) {
    std::printf("would stop %s\n", CountsText(*counts).c_str());
  } else if (stopping == 0) {
    std::printf("stopped %s\n", Counted(stopped, "job").c_str());
  } else if (stopped == 0) {
    std::printf("%s %s stopping\n", Counted(stopping, "job").c_str(), stopping == 1 ? "is" : "are");
  } else {
    std::printf("stopped %s, %s %s stopping\n", Counted(stopped, "job").c_str(),
                std::to_string(stopping).c_str(), stopping == 1 ? "is" : "are");
  }
  if (stopping > 0 && !options.now && !options.dry_run)
    PrintHint("ath ps --state stopping", common.quiet);
  return 0;
}

}  // namespace athanor
