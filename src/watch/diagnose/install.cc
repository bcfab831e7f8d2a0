#include "watch/diagnose/install.h"

#include <re2/re2.h>

#include <string>
#include <vector>

#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/diagnose/traceback.h"

namespace athanor {
namespace {

struct InstallRule {
  const char* pattern;  // group 1: the requirement
  const char* why;      // {} is group 1
  const char* hint;
};

// In order of how much they tell; the first rule that matches any line wins.
constexpr InstallRule kRules[] = {
    {R"(Invalid requirement: '?([^'(]+?)'?(?:: .*| \(from.*)?$)", "'{}' is not a requirement",
     "correct that line of the requirements file"},
    {R"(Could not open requirements file: .*?'([^']+)')", "the requirements file {} is not there",
     "correct environment.requirements in the job file"},
    {R"(Package '([^']+)' requires a different Python)", "{} needs another version of Python",
     "choose a version of {} for this Python, or set environment.python"},
    {R"(THESE PACKAGES DO NOT MATCH THE HASHES())",
     "a package does not have the hash that the requirements file demands",
     "renew the hashes of the requirements file"},
    {R"(Cannot install (.+?) because these package versions have conflicting dependencies)",
     "{} cannot be installed together", "loosen the versions you ask for"},
    {R"(ResolutionImpossible())", "the versions asked for exclude each other",
     "loosen the versions you ask for"},
    // An index that cannot be reached or opened has no version of anything.
    {R"(Could not fetch URL \S+: 40[13] .* for url: \S+/([^/\s]+)/?(?: - skipping)?$)",
     "the package index refused access to {}",
     "check the token: environment.index.auth in the job file\nath secret ls"},
    {R"(Retrying \(Retry\(total=0,()|Could not fetch URL \S+: connection error)",
     "the package index did not answer", "check the network\nath retry {{job}}"},
    {R"(No matching distribution found for (.+?)(?: \(from.*)?$)",
     "no version of {} fits this Python and this machine, or the index has none",
     "correct the name or version of {} in the requirements file"},
    {R"(Could not find a version that satisfies the requirement (\S+))",
     "no version of {} fits this Python and this machine, or the index has none",
     "correct the name or version of {} in the requirements file"},
    {R"(Failed building wheel for (\S+))", "{} had to be compiled, and that failed",
     "ask for a version of {} that has a wheel for this Python"},
    {R"(Could not build wheels for ([^,]+))", "{} had to be compiled, and that failed",
     "ask for a version of {} that has a wheel for this Python"},
    {R"((?:egg_info|metadata|build_wheel|build dependencies).*did not run successfully())"
     R"(|metadata-generation-failed)",
     "a package had to be compiled, and that failed", "ath logs {{job}} --phase setup"},
    {R"(40[13] Client Error.* for url: \S+/([^/\s]+)/?$)", "the package index refused access to {}",
     "check the token: environment.index.auth in the job file\nath secret ls"},
    {R"(40[13] (?:Client )?Error()|HTTP error 40[13])", "the package index refused access",
     "check the token: environment.index.auth in the job file\nath secret ls"},
    {R"((?:Temporary failure in name resolution|Name or service not known|)"
     R"(Network is unreachable|Connection refused|Read timed out|ConnectTimeoutError|)"
     R"(Max retries exceeded)())",
     "the package index did not answer", "check the network\nath retry {{job}}"},
    {R"(No module named '?(venv|ensurepip|pip)\b)", "this Python has no {}",
     "apt-get install python3-venv   # or set environment.python"},
    {R"(ensurepip is not available())", "this Python cannot make virtual environments",
     "apt-get install python3-venv   # or set environment.python"},
};

std::string LastErrorLine(const std::vector<std::string>& lines) {
  std::string last;
  for (const std::string& line : lines) {
    const std::string_view text = Trim(line);
    if (text.empty()) continue;
    const bool error = StartsWith(ToLower(text), "error") || StartsWith(text, "×");
    if (error || !StartsWith(ToLower(last), "error")) last = text;
  }
  return last.substr(0, 300);
}

}  // namespace

InstallProblem ReadInstallLog(std::string_view log) {
  InstallProblem problem;
  const std::vector<std::string> lines = PlainLines(log, 2'000);
  for (const std::string& line : lines) {
    if (line.find("No space left on device") != std::string::npos ||
        line.find("Disk quota exceeded") != std::string::npos) {
      problem.disk_full = true;
      problem.why = "no space is left on the disk";
      problem.hint = "df -h\nath ps -a   # old jobs; ath rm removes one with its outputs";
      return problem;
    }
  }
  for (const InstallRule& rule : kRules) {
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 regex(rule.pattern, options);
    for (const std::string& line : lines) {
      re2::StringPiece groups[2];
      if (!regex.Match(line, 0, line.size(), RE2::UNANCHORED, groups, 2)) continue;
      if (groups[1].data() != nullptr) {
        const std::string_view name(groups[1].data(), groups[1].size());
        problem.requirement = Printable(Trim(name).substr(0, 200));
      }
      const std::string& named = problem.requirement;
      problem.why = fmt::format(fmt::runtime(rule.why), named);
      problem.hint = fmt::format(fmt::runtime(rule.hint), named);
      return problem;
    }
  }
  problem.why = Printable(LastErrorLine(lines));
  if (problem.why.empty()) problem.why = "the installer said nothing";
  problem.hint = "ath logs {job} --phase setup";
  return problem;
}

}  // namespace athanor
