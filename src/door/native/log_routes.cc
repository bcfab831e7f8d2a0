// The native door's logs by line: a page of lines, and a search.
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/text/json_writer.h"
#include "door/native/log_part.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "record/logs/log_lines.h"

namespace athanor {
namespace {

constexpr uint64_t kUsualLines = 500;
constexpr uint64_t kMostLines = 5000;
constexpr uint64_t kUsualMatches = 200;
constexpr uint64_t kMostMatches = 10'000;
constexpr size_t kMostPattern = 1000;

Result<LogPart> PartOf(const Request& request, const JobRecord& record) {
  ATHANOR_TRY(const auto part, LogPartIn(request, record));
  if (part.setup || part.run) return part;
  return Fail(
      Error{ErrorCode::kInvalid, "a log without lines was asked for", "phase=run, setup or all"}
          .Why("got phase 'none'")
          .Id("ATH-R0014"));
}

void Lines(DoorContext& context, const std::shared_ptr<LogLines>& lines, const Call& call) {
  const auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  const auto part = PartOf(call.request, *record);
  if (!part) return call.Refuse(part.error());
  const auto from = WholeNumber(call.request, "from");
  if (!from) return call.Refuse(from.error());
  const auto count = WholeNumber(call.request, "count");
  if (!count) return call.Refuse(count.error());
  const bool several = HasSeveralRanks(*part, *record);
  OnReader(context, call,
           [call, lines, several, job = record->id, part = *part, from = *from,
            count = std::min(count->value_or(kUsualLines), kMostLines)] {
             const auto page = lines->Read(job, part, from, count);
             if (!page) return call.Refuse(page.error());
             std::string body;
             JsonWriter json(body);
             json.BeginObject();
             json.Int("from", static_cast<int64_t>(page->from));
             json.Int("total", static_cast<int64_t>(page->total));
             json.Key("first_error");
             if (page->first_error) {
               json.Int(static_cast<int64_t>(*page->first_error));
             } else {
               json.Raw("null");
             }
             json.Key("lines");
             json.BeginArray();
             for (const auto& line : page->lines) json.Text(line);
             json.EndArray();
             if (several) {
               json.Key("ranks");
               json.BeginArray();
               for (const uint32_t rank : page->ranks) json.Int(rank);
               json.EndArray();
             }
             json.EndObject();
             call.Json(200, std::move(body));
           });
}

// Letters match in both cases unless the text has a capital.
Result<std::shared_ptr<RE2>> PatternOf(const Request& request) {
  const auto text = request.Query("q").value_or("");
  const bool regex = request.Query("regex").value_or("0") == "1";
  if (text.empty() || text.size() > kMostPattern) {
    return Fail(Error{ErrorCode::kInvalid,
                      text.empty() ? "nothing to search for" : "the text to search for is too long",
                      "q=TEXT"}
                    .Id("ATH-R0014"));
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);
  options.set_case_sensitive(
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c) != 0; }));
  auto pattern = std::make_shared<RE2>(regex ? text : RE2::QuoteMeta(text), options);
  if (!pattern->ok()) {
    return Fail(Error{ErrorCode::kInvalid, "this is no regular expression",
                      "search for the text itself: regex=0"}
                    .Why(pattern->error())
                    .Id("ATH-R0014"));
  }
  return pattern;
}

void Search(DoorContext& context, const std::shared_ptr<LogLines>& lines, const Call& call) {
  const auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  const auto part = PartOf(call.request, *record);
  if (!part) return call.Refuse(part.error());
  const auto pattern = PatternOf(call.request);
  if (!pattern) return call.Refuse(pattern.error());
  const auto limit = WholeNumber(call.request, "limit");
  if (!limit) return call.Refuse(limit.error());
  const bool several = HasSeveralRanks(*part, *record);
  OnReader(context, call,
           [call, lines, several, job = record->id, part = *part, pattern = *pattern,
            limit = std::min(limit->value_or(kUsualMatches), kMostMatches)] {
             const auto found = lines->Search(
                 job, part,
                 [&](std::string_view line) {
                   return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *pattern);
                 },
                 limit);
             if (!found) return call.Refuse(found.error());
             std::string body;
             JsonWriter json(body);
             json.BeginObject();
             json.Int("total", static_cast<int64_t>(found->total));
             json.Key("matches");
             json.BeginArray();
             for (const auto& match : found->matches) {
               json.BeginObject();
               json.Int("line", static_cast<int64_t>(match.line));
               json.Text("text", match.text);
               if (several) json.Int("rank", match.rank);
               json.EndObject();
             }
             json.EndArray();
             json.EndObject();
             call.Json(200, std::move(body));
           });
}

}  // namespace

std::vector<DoorRoute> LogRoutes(DoorContext& context) {
  auto lines = std::make_shared<LogLines>(context.logs);  // shared by both routes
  return {
      {"GET", "/api/v1/jobs/{job}/log/lines", "jobs.lines",
       [&context, lines](const Call& call) { Lines(context, lines, call); }},
      {"GET", "/api/v1/jobs/{job}/log/search", "jobs.search",
       [&context, lines](const Call& call) { Search(context, lines, call); }},
  };
}

}  // namespace athanor
