#include "run/environment/installer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/diagnose/install.h"

namespace athanor {
namespace {

constexpr size_t kTail = 256u << 10;

size_t AuthorityEnd(const std::string& url, size_t start) {
  return std::min(url.find_first_of("/?#", start), url.size());
}

std::string HostOf(const std::string& url) {
  const auto plain = WithoutUserInfo(url);
  const size_t start = plain.find("://") + 3;
  const auto authority = plain.substr(start, AuthorityEnd(plain, start) - start);
  return authority.substr(0, authority.rfind(':'));
}

// Pythons before 3.11 read a word literally, later ones also quoted; a word is quoted only if it
// must be.
Result<std::string> NetrcWord(const std::string& word) {
  const bool control =
      std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 0x20; });
  if (word.empty() || control) {
    return Fail(ErrorCode::kInvalid, "the token of the package index is empty or has a line break",
                "ath secret set NAME   # with the token alone");
  }
  if (word.find_first_of(" \\") == std::string::npos && word[0] != '"') return word;
  return '"' + ReplaceAll(ReplaceAll(word, "\\", "\\\\"), "\"", "\\\"") + '"';
}

struct Login {
  std::string name = "__token__";
  std::string password;
};

Login LoginOf(const std::string& token) {
  const size_t colon = token.find(':');
  if (colon == std::string::npos || colon == 0) return {"__token__", token};
  return {token.substr(0, colon), token.substr(colon + 1)};
}

// The user's entries for other hosts keep working.
std::string UsersNetrc(const std::map<std::string, std::string>& base) {
  const auto named = base.find("NETRC");
  const auto home = base.find("HOME");
  if (named == base.end() && home == base.end()) return "";
  const auto text =
      ReadFile(named != base.end() ? named->second : JoinPath(home->second, ".netrc"), 1u << 20);
  return text ? *text + "\n\n" : "";
}

// If an index refuses, pip only says that there is no such package.
std::string IndexTroubles(const std::string& details) {
  const auto text = details.empty() ? Result<std::string>("") : ReadFile(details, 64u << 20);
  if (!text) return "";
  std::string troubles;
  for (const auto& line : Split(*text, '\n')) {
    // 404 is how an index says that it does not have a package.
    const size_t start = line.find("Could not fetch URL ");
    if (start == std::string::npos || line.find(": 404 ") != std::string::npos) continue;
    troubles += line.substr(start) + "\n";
  }
  return troubles;
}

Status Explain(const CommandResult& result, const std::string& said) {
  if (result.cancelled) {
    return Fail(ErrorCode::kCancelled, "stopped while the environment was built");
  }
  const auto problem = ReadInstallLog(said);
  auto error =
      Error{problem.disk_full ? ErrorCode::kExhausted : ErrorCode::kInvalid, "", problem.hint}.Why(
          problem.why);
  if (result.signal != 0 && !problem.disk_full) {
    error.why = fmt::format("the installer was killed by signal {}", result.signal);
    error.hint = result.signal == 9 ? "free -h   # most often memory ran out" : problem.hint;
  } else if (!problem.requirement.empty() &&
             problem.why.find(problem.requirement) == std::string::npos) {
    error.why = problem.requirement + ": " + problem.why;
  }
  return NotBuilt(std::move(error));
}

}  // namespace

std::map<std::string, std::string> InstallerEnvironment(const EnvironmentOptions& options) {
  std::map<std::string, std::string> environment;
  // A mirror that the machine is set up for; it may hold a password, so it does not
  // come with the job but from the agent's own environment.
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && StartsWith(pair, "PIP_")) {
      environment[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    }
  }
  for (const auto& [name, value] : options.base) environment[name] = value;
  // They would direct the installers to another Python than the environment's.
  for (const auto* name : {"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
                           "PIP_PREFIX", "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV"}) {
    environment.erase(name);
  }
  environment["PIP_USER"] = "0";
  environment["PYTHONNOUSERSITE"] = "1";
  environment["PYTHONUNBUFFERED"] = "1";
  environment.emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
  return environment;
}

std::string WithoutUserInfo(std::string url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const size_t start = scheme + 3;
  const size_t at = url.substr(0, AuthorityEnd(url, start)).rfind('@');
  if (at != std::string::npos && at >= start) url.erase(start, at + 1 - start);
  return url;
}

tl::unexpected<Error> NotBuilt(Error error) {
  constexpr std::string_view kWords = "the environment could not be built";
  if (error.code == ErrorCode::kCancelled) return Fail(std::move(error));
  if (!error.what.empty() && error.what != kWords) {
    error.why = error.why.empty() ? error.what : error.what + ": " + error.why;
  }
  if (error.code == ErrorCode::kExhausted && error.hint.empty()) error.hint = "df -h";
  error.what = kWords;
  return Fail(std::move(error));
}

Installer::Installer(const EnvironmentOptions& options,
                     std::shared_ptr<const SecretPatterns> patterns)
    : options_(&options),
      patterns_(std::move(patterns)),
      environment_(InstallerEnvironment(options)) {}

Result<Installer> Installer::Make(const EnvironmentOptions& options, const std::string& index_url) {
  std::vector<SecretValue> secrets;
  if (!options.index_token.empty()) {
    const auto login = LoginOf(options.index_token);
    secrets.push_back({"INDEX_TOKEN", options.index_token});
    // What goes over the wire, should a server repeat it.
    secrets.push_back({"INDEX_TOKEN", login.name + ":" + login.password});
    if (login.password.size() >= SecretPatterns::kMinValue) {
      secrets.push_back({"INDEX_TOKEN", login.password});
    }
  }
  ATHANOR_TRY(auto patterns, SecretPatterns::Make(secrets));
  Installer installer(options, std::move(patterns));
  if (!index_url.empty()) ATHANOR_CHECK_OK(installer.OfferIndex(WithoutUserInfo(index_url)));
  return installer;
}

Status Installer::OfferIndex(const std::string& index_url) {
  environment_["PIP_INDEX_URL"] = index_url;
  environment_.erase("PIP_NO_INDEX");
  if (options_->index_token.empty()) return Ok();
  const auto login = LoginOf(options_->index_token);
  ATHANOR_TRY(const auto name, NetrcWord(login.name));
  ATHANOR_TRY(const auto password, NetrcWord(login.password));
  netrc_.reset(::memfd_create("netrc", MFD_CLOEXEC));
  if (!netrc_) return FailErrno("make room for the index's token", errno);
  // The last entry of a host counts.
  ATHANOR_CHECK_OK(WriteAll(
      netrc_.get(), UsersNetrc(options_->base) + fmt::format("machine {}\nlogin {}\npassword {}\n",
                                                             HostOf(index_url), name, password)));
  environment_["NETRC"] = fmt::format("/proc/{}/fd/{}", ::getpid(), netrc_.get());
  // A cached reply can contain the request's credentials, if the index varies by them.
  environment_["PIP_NO_CACHE_DIR"] = "1";
  return Ok();
}

Status Installer::Run(const std::vector<std::string>& argv, const std::string& details) {
  CommandOptions command;
  command.cwd = options_->source_dir;
  command.environment.emplace();
  for (const auto& [name, value] : environment_) command.environment->push_back(name + "=" + value);
  command.output_limit = 0;
  command.cancelled = options_->cancelled;
  Scrubber scrubber(patterns_);
  std::string tail;
  const auto pass = [&](std::string_view clean) {
    if (options_->log && !clean.empty()) options_->log(clean);
    tail += clean;
    if (tail.size() > 2 * kTail) tail.erase(0, tail.size() - kTail);
  };
  command.on_output = [&](std::string_view bytes) { pass(scrubber.Feed(bytes)); };
  auto result = RunCommand(argv, command);
  pass(scrubber.Flush());
  if (!result) return NotBuilt(std::move(result).error());
  if (result->ok()) return Ok();
  pass(scrubber.Feed(IndexTroubles(details)));
  pass(scrubber.Flush());
  return Explain(*result, tail);
}

bool Installer::Succeeds(const std::vector<std::string>& argv) {
  CommandOptions command;
  command.environment.emplace();
  for (const auto& [name, value] : environment_) command.environment->push_back(name + "=" + value);
  command.cancelled = options_->cancelled;
  const auto result = RunCommand(argv, command);
  return result && result->ok();
}

void Installer::Say(const std::string& line) {
  if (options_->log) options_->log(line + "\n");
}

}  // namespace athanor
