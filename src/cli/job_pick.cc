#include "cli/job_pick.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "cli/screen/output.h"
#include "cli/screen/reading.h"

namespace athanor {
namespace {

constexpr size_t kPreviewed = 10;

}  // namespace

std::string QueryOf(const JobPick& pick) {
  std::string query;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) query += std::string("&") + key + "=" + UrlEncode(value);
  };
  add("state", pick.state);
  add("experiment", pick.experiment);
  add("name", pick.name);
  add("older", pick.older);
  for (const auto& tag : pick.tags) query += "&tag=" + UrlEncode(tag);
  return query;
}

std::string FlagsOf(const JobPick& pick) {
  std::string flags = pick.all ? " --all" : "";
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) flags += std::string(" ") + flag + " " + ShellQuote(value);
  };
  add("--state", pick.state);
  add("--experiment", pick.experiment);
  add("--name", pick.name);
  add("--older-than", pick.older);
  for (const auto& tag : pick.tags) add("--tag", tag);
  return flags;
}

void TakePattern(std::vector<std::string>& jobs, JobPick& pick) {
  if (jobs.size() != 1 || !pick.name.empty()) return;
  if (jobs.front().find_first_of("*?[") == std::string::npos) return;
  pick.name = jobs.front();
  jobs.clear();
}

std::string PreviewText(const Json& rows, uint64_t matched) {
  Table table({"JOB", "ID", "STATE", "CREATED"});
  size_t shown = 0;
  for (const auto& job : rows) {
    if (shown++ == kPreviewed) break;
    const std::string id = Text(job, "id");
    table.Add({Printable(Text(job, "name")), id.substr(id.size() - 6), Text(job, "shown_state"),
               Ago(TimeOf(job, "created"))});
  }
  Terminal terminal = DetectTerminal();
  terminal.color = terminal.color && terminal.err_tty;
  std::string text = table.Format(terminal);
  if (matched > kPreviewed) text += "... and " + std::to_string(matched - kPreviewed) + " more\n";
  return text;
}

Result<bool> IsConfirmed(const std::string& preview, const std::string& question,
                         const std::string& command) {
  if (!::isatty(STDIN_FILENO) || !::isatty(STDERR_FILENO)) {
    return Fail(Error{ErrorCode::kInvalid, question + " This needs --yes when no one can be asked",
                      command + " --yes\n" + command + " --dry-run"}
                    .Id("ATH-C0016"));
  }
  std::fprintf(stderr, "%s%s [y/N] ", preview.c_str(), question.c_str());
  const int answer = std::getchar();
  for (int c = answer; c != EOF && c != '\n';) c = std::getchar();
  return answer == 'y' || answer == 'Y';
}

}  // namespace athanor
