#include "submit/git.h"

#include <unistd.h>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

bool InRepository(const std::string& dir) {
  for (std::string at = dir;; at = DirName(at)) {
    if (Exists(JoinPath(at, ".git"))) return true;
    if (at == "/" || at == ".") return false;
  }
}

// Our environment, without what would point git elsewhere.
std::vector<std::string> GitEnvironment() {
  std::vector<std::string> environment{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (StartsWith(text, "GIT_") || StartsWith(text, "LC_ALL=")) continue;
    environment.emplace_back(text);
  }
  return environment;
}

Result<CommandResult> RunGit(const std::string& dir, std::chrono::milliseconds limit,
                             const std::vector<std::string>& words) {
  std::vector<std::string> argv{"git", "--no-pager",      "-C", dir,
                                "-c",  "core.fsmonitor=", "-c", "core.hooksPath=/dev/null",
                                "-c",  "diff.external="};
  argv.insert(argv.end(), words.begin(), words.end());
  CommandOptions options;
  options.environment = GitEnvironment();
  options.timeout = limit;
  options.output_limit = kGitDiffLimit + 1;
  options.separate_stderr = true;
  return RunCommand(argv, options);
}

}  // namespace

GitFacts ReadGitFacts(const std::string& dir, std::chrono::milliseconds limit) {
  GitFacts facts;
  if (!InRepository(dir)) return facts;
  const auto head = RunGit(dir, limit, {"rev-parse", "HEAD", "--abbrev-ref", "HEAD"});
  if (!head) {
    facts.note = "the commit is not recorded: " + head.error().what;
    return facts;
  }
  if (!head->ok()) {
    facts.note = head->timed_out ? "the commit is not recorded: git took too long"
                                 : "the commit is not recorded: " +
                                       Printable(Trim(head->error_output).substr(0, 200));
    return facts;
  }
  const auto lines = Split(Trim(head->output), '\n');
  if (lines.size() != 2) return facts;
  facts.commit = lines[0];
  if (lines[1] != "HEAD") facts.branch = lines[1];
  const auto diff = RunGit(
      dir, limit,
      {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "HEAD", "--", "."});
  if (!diff || !diff->ok()) {
    facts.note = "uncommitted changes are not recorded: git " +
                 std::string(diff && diff->timed_out ? "took too long" : "diff failed");
    return facts;
  }
  facts.dirty = !diff->output.empty();
  if (diff->truncated || diff->output.size() > kGitDiffLimit) {
    facts.note = fmt::format("uncommitted changes are not recorded: more than {}",
                             HumanBytes(kGitDiffLimit));
  } else {
    facts.diff = diff->output;
  }
  return facts;
}

}  // namespace athanor
