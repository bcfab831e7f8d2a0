// ps: the jobs there are, once or as they change.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/pages.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "price/price.h"

namespace athanor {
namespace {

constexpr unsigned kSecondsBetween = 2;
constexpr size_t kLinesAround = 3;  // of a watched list: its head, a hint and the cursor

Table TableOf(const Json& rows) {
  Table table({"JOB", "ID", "STATE", "CREATED", "TOOK", "COST", "WHAT"});
  for (const auto& job : rows) {
    auto id = Text(job, "id");
    auto state = Text(job, "shown_state");
    bool over = state == "Completed";
    std::string what = Text(job, "command");
    if (!over && job.contains("cause")) what = Text(job["cause"], "text");
    if (job.contains("ranks")) what = Text(job, "ranks") + "  " + what;
    table.Add({Printable(Text(job, "name")), id.substr(id.size() - 6), state,
               Ago(TimeOf(job, "created")), Took(job), HumanMoney(Number(job, "cost_micros")),
               Printable(what) + (job.value("simulated", false) ? "  (simulated)" : "")},
              {Ink::kBold, Ink::kGrey, InkOf(state)});
  }
  return table;
}

struct Listed {
  Json rows;
  size_t shown = 0;
  uint64_t matched = 0;
};

Result<Listed> Fetch(Client& client, const ListOptions& options, size_t limit) {
  ATHANOR_TRY(const auto jobs,
              FetchJobs(client, QueryOf(options.pick), options.all ? kAllPages : limit));
  ATHANOR_TRY(Json rows, ParseJson("[" + jobs.rows + "]"));
  return Listed{std::move(rows), jobs.shown, jobs.matched};
}

void SayNone(const Common& common, const ListOptions& options) {
  const bool chosen = options.pick.filters();
  std::puts(chosen ? "no matching jobs" : "no jobs yet");
  PrintHint(chosen ? "ath ps -a" : "ath run -- python train.py", common.quiet);
}

size_t RowsOfScreen() {
  struct winsize size {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

// Draws the list over the one before, from the top of the screen.
int WatchOnScreen(const Common& common, Client& client, const ListOptions& options) {
  for (bool first = true;; first = false) {
    const Terminal terminal = DetectTerminal();
    const size_t rows = RowsOfScreen();
    const size_t room = rows > kLinesAround + 1 ? rows - kLinesAround : 1;
    const auto listed = Fetch(client, options, std::min(options.limit, room));
    if (!listed) return Refuse(listed.error(), common.json);
    std::string text =
        listed->rows.empty() ? "no matching jobs\n" : TableOf(listed->rows).Format(terminal);
    const size_t lines = std::min(listed->rows.size() + 1, room + 1);
    size_t end = 0;
    for (size_t i = 0; i < lines && end != std::string::npos; ++i)
      end = text.find('\n', end + (i > 0));
    if (end != std::string::npos) text.resize(end + 1);
    // Each line ends what it overwrites: a cleared screen would flicker.
    std::string screen = first ? "\x1b[2J\x1b[H" : "\x1b[H";
    screen += ReplaceAll(std::move(text), "\n", "\x1b[K\n");
    screen += Paint(terminal, Ink::kGrey,
                    std::to_string(listed->matched) + " jobs, " + Local(SystemClock().Wall().ms) +
                        "  (Ctrl-C to quit)");
    screen += "\x1b[K\x1b[J\n";
    std::fputs(screen.c_str(), stdout);
    std::fflush(stdout);
    ::sleep(kSecondsBetween);
  }
}

// Every job once, and again when its state is another.
int WatchLines(const Common& common, Client& client, const ListOptions& options) {
  std::map<std::string, std::string> seen;
  for (bool first = true;; first = false) {
    const auto listed = Fetch(client, options, options.limit);
    if (!listed) return Refuse(listed.error(), common.json);
    Json changed = Json::array();
    for (const auto& job : listed->rows) {
      auto& known = seen[Text(job, "id")];
      if (known != Text(job, "shown_state")) changed.push_back(job);
      known = Text(job, "shown_state");
    }
    if (common.json) {
      for (const auto& job : changed) PrintJson(job);
    } else if (first || !changed.empty()) {
      const std::string text = TableOf(changed).Format(DetectTerminal());
      std::fputs(first ? text.c_str() : text.c_str() + text.find('\n') + 1, stdout);
    }
    std::fflush(stdout);
    if (std::ferror(stdout)) return 0;
    ::sleep(kSecondsBetween);
  }
}

}  // namespace

int PsVerb(const Common& common, const ListOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  if (options.watch) {
    return DetectTerminal().out_tty && !common.json ? WatchOnScreen(common, *client, options)
                                                    : WatchLines(common, *client, options);
  }
  if (common.json) {
    // A hundred thousand rows are passed on as they came.
    const auto jobs =
        FetchJobs(*client, QueryOf(options.pick), options.all ? kAllPages : options.limit);
    if (!jobs) return Refuse(jobs.error(), common.json);
    std::fputs("{\"jobs\":[", stdout);
    std::fwrite(jobs->rows.data(), 1, jobs->rows.size(), stdout);
    std::printf("],\"matched\":%llu}\n", static_cast<unsigned long long>(jobs->matched));
    return 0;
  }
  const auto listed = Fetch(*client, options, options.limit);
  if (!listed) return Refuse(listed.error(), common.json);
  if (listed->rows.empty()) {
    SayNone(common, options);
    return 0;
  }
  std::fputs(TableOf(listed->rows).Format(DetectTerminal()).c_str(), stdout);
  SayMore(listed->shown, listed->matched, "jobs", "ath ps -a" + FlagsOf(options.pick),
          common.quiet);
  return 0;
}

}  // namespace athanor
