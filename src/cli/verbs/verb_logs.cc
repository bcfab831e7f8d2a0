// ath logs: what a job printed.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <re2/re2.h>
#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/attach.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "door/native/log_part.h"
#include "net/http/sse.h"

namespace athanor {
namespace {

// Lets whole lines through that match; keeps an unfinished one for later.
class LineFilter {
 public:
  explicit LineFilter(const std::string& pattern)
      : regex_(pattern.empty() ? nullptr : std::make_unique<RE2>(pattern, RE2::Quiet)) {}

  bool ok() const { return !regex_ || regex_->ok(); }
  std::string problem() const { return regex_ ? regex_->error() : ""; }

  std::string Take(std::string_view bytes) {
    if (!regex_) return std::string(bytes);
    std::string out;
    open_ += bytes;
    size_t start = 0;
    for (size_t end; (end = open_.find('\n', start)) != std::string::npos; start = end + 1) {
      Line(std::string_view(open_).substr(start, end + 1 - start), out);
    }
    open_.erase(0, start);
    return out;
  }
  std::string Finish() {
    std::string out;
    if (!open_.empty()) Line(open_, out);
    open_.clear();
    return out;
  }

 private:
  void Line(std::string_view line, std::string& out) {
    // Without its end, so that $ means the end of the line.
    size_t size = line.size() - (line.back() == '\n' ? 1 : 0);
    if (RE2::PartialMatch(re2::StringPiece(line.data(), size), *regex_)) out += line;
  }
  std::unique_ptr<RE2> regex_;
  std::string open_;
};

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Result<std::string> LogQuery(const LogOptions& options) {
  std::string query = "phase=" + options.phase;
  if (!options.tail.empty()) query += "&tail=" + UrlEncode(options.tail);
  if (!options.rank.empty()) query += "&rank=" + UrlEncode(options.rank);
  if (!options.host.empty()) query += "&host=" + UrlEncode(options.host);
  if (!options.since.empty()) {
    ATHANOR_TRY(auto span, ParseDuration(options.since));
    const auto since = std::max<int64_t>(SystemClock().Wall().ms - span.count(), 0);
    query += "&since_ms=" + std::to_string(since);
  }
  return query;
}

// By the stream of the job, which says whose each line is.
int ByLines(const Common& common, const LogOptions& options, Client& client,
            const std::string& query, LineFilter& filter) {
  AttachOptions attach;
  attach.job = UrlEncode(options.job);
  attach.name = options.job;
  attach.quiet = common.quiet;
  attach.query = query;
  attach.json = common.json;
  attach.split = false;
  attach.footer = false;
  attach.stop_on_interrupt = false;
  attach.once = !options.follow;
  attach.one_rank = !options.rank.empty();
  attach.one_host = !options.host.empty();
  attach.tags = !options.no_prefix;
  if (!options.grep.empty()) {
    attach.filter = [&filter](std::string_view bytes) { return filter.Take(bytes); };
  }
  auto end = Attach(client, attach);
  if (!end) return Refuse(end.error(), common.json);
  auto rest = filter.Finish();
  if (common.json && !rest.empty()) {
    PrintJson({{"event", "log"}, {"text", rest}});
  } else {
    Print(rest);
  }
  return 0;
}

}  // namespace

int LogsVerb(const Common& common, const LogOptions& options) {
  LineFilter filter(options.grep);
  if (!filter.ok()) {
    return Refuse(Error{ErrorCode::kInvalid, "--grep is not a regular expression",
                        "quote it: --grep 'loss=.*'"}
                      .Why(filter.problem())
                      .Id("ATH-C0012"),
                  common.json);
  }
  auto query = LogQuery(options);
  if (!query) return Refuse(query.error(), common.json);
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  if (options.follow || common.json) return ByLines(common, options, *client, *query, filter);
  HttpCall call;
  call.target = "/api/v1/jobs/" + UrlEncode(options.job) + "/logs?" + *query;
  bool any = false;
  bool several = false;
  call.on_head = [&](const HttpReply& head) { several = !head.headers.Get(kSeveralRanks).empty(); };
  call.on_body = [&](std::string_view bytes) {
    if (several) return false;
    any = true;
    Print(filter.Take(bytes));
    return !std::ferror(stdout);
  };
  auto reply = client->Do(std::move(call));
  if (!reply) return Refuse(reply.error(), common.json);
  if (several) return ByLines(common, options, *client, *query, filter);
  Print(filter.Finish());
  std::fflush(stdout);
  if (!any && !options.rank.empty()) {
    PrintHint("nothing from rank " + options.rank + ": ath show " + ShellQuote(options.job) +
                  " tells which ranks there are",
              common.quiet);
  } else if (!any) {
    PrintHint(
        "nothing printed yet in this phase: ath logs " + ShellQuote(options.job) + " --phase all",
        common.quiet);
  }
  return 0;
}

}  // namespace athanor
