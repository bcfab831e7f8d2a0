#include "run/environment/interpreter.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

bool IsProgram(const std::string& path) {
  struct stat there {};
  return ::stat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

bool IsScript(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 2> start{};
  return fd && ::read(fd.get(), start.data(), start.size()) == 2 && start[0] == '#' &&
         start[1] == '!';
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string> ProgramsNamed(const std::string& name, const std::string& path) {
  std::vector<std::string> found;
  for (const auto& dir : Split(path, ':')) {
    if (!StartsWith(dir, "/")) continue;  // relative to a folder that is not the job's
    const auto program = JoinPath(dir, name);
    if (IsProgram(program)) found.push_back(program);
  }
  return found;
}

std::string AskScript(const std::string& path,
                      const std::map<std::string, std::string>& environment) {
  CommandOptions options;
  options.timeout = std::chrono::seconds(30);
  options.separate_stderr = true;
  options.environment.emplace();
  for (const auto& [name, value] : environment) options.environment->push_back(name + "=" + value);
  const auto said = RunCommand({path, "-c", "import sys; print(sys.executable)"}, options);
  return said && said->ok() ? std::string(Trim(said->output)) : "";
}

std::optional<Interpreter> Resolve(const std::string& path,
                                   const std::map<std::string, std::string>& environment) {
  Interpreter found{path, "", ""};
  if (IsScript(path)) found.path = AskScript(path, environment);
  std::array<char, PATH_MAX> real{};
  struct stat there {};
  if (!IsProgram(found.path) || ::realpath(found.path.c_str(), real.data()) == nullptr ||
      ::stat(real.data(), &there) != 0) {
    return std::nullopt;
  }
  found.real = real.data();
  found.identity = fmt::format("{} {} {}.{}", found.real, there.st_size, there.st_mtim.tv_sec,
                               there.st_mtim.tv_nsec);
  return found;
}

tl::unexpected<Error> NoInterpreter(const std::string& asked, const std::string& path) {
  // Shims are skipped: they exist even for versions that do not.
  std::set<std::pair<int, std::string>> versions;
  for (const auto& dir : Split(path, ':')) {
    const auto names = ListDir(dir);
    if (!names) continue;
    for (const auto& name : *names) {
      constexpr std::string_view kPrefix = "python3.";
      if (!StartsWith(name, kPrefix) || !AllDigits(name.substr(kPrefix.size())) ||
          name.size() > kPrefix.size() + 4 || IsScript(JoinPath(dir, name))) {
        continue;
      }
      const auto minor = name.substr(kPrefix.size());
      versions.emplace(std::stoi(minor), "3." + minor);
    }
  }
  std::vector<std::string> known;
  for (const auto& [order, version] : versions) known.push_back(version);
  return Fail(Error{ErrorCode::kNotFound,
                    asked.empty() ? "there is no Python" : "there is no Python " + Printable(asked),
                    known.empty() ? "sudo apt install python3 python3-venv"
                                  : fmt::format("environment: {{python: \"{}\"}}", known.back())}
                  .Why(known.empty() ? "no python3 is on the PATH"
                                     : "on the PATH there is " + Join(known, ", ")));
}

std::string NormalName(std::string_view name) {
  std::string normal;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !normal.empty() && normal.back() == '-') continue;
    normal += separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return normal;
}

}  // namespace

std::string PathOf(const std::map<std::string, std::string>& environment) {
  const auto path = environment.find("PATH");
  return path == environment.end() || path->second.empty() ? "/usr/local/bin:/usr/bin:/bin"
                                                           : path->second;
}

std::string FindProgram(const std::string& name, const std::string& path) {
  const auto found = ProgramsNamed(name, path);
  return found.empty() ? "" : found.front();
}

Result<Interpreter> FindInterpreter(const std::string& asked, bool system_first,
                                    const std::map<std::string, std::string>& environment) {
  auto path = PathOf(environment);
  if (system_first) path = "/usr/bin:" + path;
  if (asked.find('/') != std::string::npos) {
    if (StartsWith(asked, "/")) {
      if (auto found = Resolve(asked, environment)) return std::move(*found);
    }
    return NoInterpreter(asked, path);
  }
  std::vector<std::string> names = {"python3", "python"};
  if (!asked.empty()) {
    const auto parts = Split(asked, '.');
    const bool version = std::all_of(parts.begin(), parts.end(), AllDigits);
    if (version && parts.size() > 2) {
      return Fail(
          Error{ErrorCode::kInvalid, "environment.python is too exact",
                fmt::format("environment: {{python: \"{}.{}\"}}, or the interpreter's path",
                            parts[0], parts[1])}
              .Why("got " + asked + "; interpreters are told apart by their first two numbers"));
    }
    names = {version ? "python" + asked : asked};
  }
  for (const auto& name : names) {
    for (const auto& program : ProgramsNamed(name, path)) {
      if (auto found = Resolve(program, environment)) return std::move(*found);
    }
  }
  return NoInterpreter(asked, path);
}

std::vector<std::string> SitesUnder(const std::string& prefix) {
  std::vector<std::string> sites;
  const auto lib = JoinPath(prefix, "lib");
  const auto names = ListDir(lib);
  if (!names) return sites;
  for (const auto& name : *names) {
    if (!StartsWith(name, "python3")) continue;
    for (const std::string_view kind : {"site-packages", "dist-packages"}) {
      auto site = JoinPath(JoinPath(lib, name), kind);
      if (Exists(site)) sites.push_back(std::move(site));
    }
  }
  return sites;
}

std::vector<std::string> SystemSites(const Interpreter& interpreter) {
  const auto prefix = DirName(DirName(interpreter.real));
  // Debian: what was installed by hand comes before what the distribution brought.
  std::vector<std::string> sites;
  if (prefix == "/usr") sites = SitesUnder("/usr/local");
  const auto own = SitesUnder(prefix);
  sites.insert(sites.end(), own.begin(), own.end());
  // One prefix may hold several versions; "python3" serves them all.
  const auto version = BaseName(interpreter.real);
  if (version.find('.') != std::string::npos) {
    std::erase_if(sites, [&](const std::string& site) {
      const auto of = BaseName(DirName(site));
      return of != version && of != "python3";
    });
  }
  return sites;
}

std::string PackagesIn(const std::vector<std::string>& sites) {
  std::map<std::string, std::string> packages;
  for (const auto& site : sites) {
    const auto names = ListDir(site);
    if (!names) continue;
    for (const auto& entry : *names) {
      if (!EndsWith(entry, ".dist-info") && !EndsWith(entry, ".egg-info")) continue;
      const auto stem = entry.substr(0, entry.rfind('.'));
      size_t cut = stem.find('-');
      while (cut != std::string::npos && !AllDigits(stem.substr(cut + 1, 1))) {
        cut = stem.find('-', cut + 1);
      }
      if (cut == std::string::npos) continue;
      auto version = stem.substr(cut + 1);
      version = version.substr(0, version.find("-py"));
      packages.emplace(NormalName(stem.substr(0, cut)), version);
    }
  }
  std::string text;
  for (const auto& [name, version] : packages) text += name + "==" + version + "\n";
  return text;
}

}  // namespace athanor
