#include "cli/screen/reading.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/format.h"
#include "base/text/rfc3339.h"
#include "base/text/text.h"
#include "cli/screen/output.h"

namespace athanor {

std::string Text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

int64_t Number(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_number() ? json[key].get<int64_t>() : 0;
}

int64_t TimeOf(const Json& json, const char* key) {
  return ParseRfc3339(Text(json, key)).value_or(WallTime{}).ms;
}

std::string Local(int64_t ms) {
  std::time_t seconds = ms / 1000;
  std::tm tm{};
  ::localtime_r(&seconds, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
  return text;
}

std::string Ago(int64_t ms) {
  if (ms == 0) return "-";
  const auto span = std::max<int64_t>((SystemClock().Wall().ms - ms) / 1000, 0);
  if (span < 60) return std::to_string(span) + " s ago";
  if (span < 3600) return std::to_string(span / 60) + " m ago";
  if (span < 86400) return std::to_string(span / 3600) + " h ago";
  return std::to_string(span / 86400) + " d ago";
}

std::string Took(const Json& job) {
  const auto started = TimeOf(job, "started");
  if (started == 0) return "-";
  const auto ended = TimeOf(job, "ended");
  const auto until = ended != 0 ? ended : SystemClock().Wall().ms;
  return HumanDuration(Millis(std::max<int64_t>(until - started, 0)));
}

std::string NumberText(const Json& value) {
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : "-";
}

// As a parameter: a name may be anything, even something that is not a path ("../x").
std::string PointsTarget(const std::string& base, const std::string& name) {
  return base + "/points?name=" + UrlEncode(name);
}

void Field(const char* name, const std::string& value) {
  if (!value.empty()) std::printf("  %-11s %s\n", name, value.c_str());
}

std::vector<std::string> LeftOutLines(const Json& left_out) {
  std::vector<std::string> lines;
  auto files = static_cast<uint64_t>(Number(left_out, "files"));
  auto bytes = static_cast<uint64_t>(Number(left_out, "bytes"));
  bool limited = false;
  for (const auto& file : left_out.value("largest", Json::array())) {
    const auto size = static_cast<uint64_t>(Number(file, "bytes"));
    const auto why = Text(file, "why");
    lines.push_back(Text(file, "name") + "  " + HumanBytes(size) + ": " + why);
    limited = limited || why.find("limit") != std::string::npos;
    files -= std::min<uint64_t>(files, 1);
    bytes -= std::min(bytes, size);
  }
  if (files > 0) lines.push_back(Counted(files, "more file") + ", " + HumanBytes(bytes));
  if (limited) lines.push_back("to keep more, set outputs: {limit: SIZE} in the job file");
  return lines;
}

int PrintJson(const Json& body) {
  std::printf("%s\n", DumpJson(body).c_str());
  return 0;
}

std::vector<std::string> UnmatchedMetrics(const Json& job) {
  std::vector<std::string> lines;
  const bool ended = TimeOf(job, "ended") != 0;
  const auto points = job.value("metrics", Json::array());
  for (const auto& asked : job.value("spec", Json::object()).value("metrics", Json::array())) {
    const auto name = Text(asked, "name");
    const bool found = std::any_of(points.begin(), points.end(),
                                   [&](const Json& one) { return Text(one, "name") == name; });
    // Before the script has run there is nothing to match.
    if (found || TimeOf(job, "started") == 0) continue;
    lines.push_back(Printable(name) + (ended ? ": no line matched " : ": no line has matched ") +
                    ShellQuote(Printable(Text(asked, "regex"))) + (ended ? "" : " so far"));
  }
  return lines;
}

}  // namespace athanor
