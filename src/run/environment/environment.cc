#include "run/environment/environment.h"

#include <unistd.h>

#include <chrono>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "run/environment/conda.h"
#include "run/environment/environment_cache.h"
#include "run/environment/installer.h"
#include "run/environment/interpreter.h"
#include "run/environment/requirements.h"

namespace athanor {
namespace {

using SteadyClock = std::chrono::steady_clock;

bool IsHost(const EnvironmentSpec& asked) { return asked.base.empty() || asked.base == "host"; }

// Most of this is refused at submit; a job may come in another way.
Status RefuseWhatCannotBe(const JobSpec& spec) {
  const auto refuse = [](std::string why, std::string hint) {
    return NotBuilt(Error{ErrorCode::kInvalid, "", std::move(hint)}.Why(std::move(why)));
  };
  const auto& asked = spec.environment;
  if (spec.env.contains("CA_REPOSITORY_ARN")) {
    return refuse("CA_REPOSITORY_ARN asks for AWS CodeArtifact, which is not available here",
                  "environment: {index: {url: ..., auth: secret:NAME}}");
  }
  if (!asked.apt.empty()) {
    return refuse("environment.apt needs a container: here it would change this machine itself",
                  "sudo apt install " + Printable(Join(asked.apt, " ").substr(0, 200)));
  }
  if (!IsHost(asked) && asked.base != "system" && asked.base != "isolated") {
    return refuse("environment.base is " + Printable(asked.base.substr(0, 200)),
                  "use host, system or isolated");
  }
  if (!asked.index_url.empty() && WithoutUserInfo(asked.index_url) != asked.index_url) {
    return refuse("environment.index.url holds a password",
                  "environment: {index: {url: ..., auth: secret:NAME}}");
  }
  return Ok();
}

// Settings of the installer that decide what it finds.
std::string InstallerSettings(const EnvironmentOptions& options) {
  const auto environment = InstallerEnvironment(options);
  std::string text;
  for (const auto* name : {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX",
                           "PIP_CONSTRAINT", "PIP_PRE", "PIP_CONFIG_FILE"}) {
    const auto setting = environment.find(name);
    if (setting == environment.end()) continue;
    text += fmt::format("{}={}\n", name, WithoutUserInfo(setting->second));
  }
  return text;
}

// A venv, over the system's packages or of its own.
class Venv {
 public:
  Venv(const JobSpec& spec, const EnvironmentOptions& options)
      : spec_(spec), asked_(spec.environment), options_(options) {}

  Result<BuiltEnvironment> FindOrMake() {
    ATHANOR_TRY(interpreter_, FindInterpreter(asked_.python, over_system(), options_.base));
    if (over_system()) system_sites_ = SystemSites(interpreter_);
    if (!asked_.requirements.empty()) {
      ATHANOR_TRY(const auto source, OpenDir(options_.source_dir));
      ATHANOR_TRY(requirements_, ReadRequirements(source.get(), asked_.requirements));
    }
    ATHANOR_TRY(const auto found,
                FindOrBuild({options_.cache_dir, Key(), options_.log, options_.cancelled},
                            [this](const std::string& dir) { return Build(dir); }));
    BuiltEnvironment out;
    out.dir = found.dir;
    out.cached = !found.built;
    out.variables["PATH"] = found.dir + "/bin:" + PathOf(options_.base);
    out.variables["VIRTUAL_ENV"] = found.dir;
    // What the system has, not what a user installed in addition.
    if (over_system()) out.variables["PYTHONNOUSERSITE"] = "1";
    // Python treats an empty one as unset.
    if (options_.base.contains("PYTHONHOME")) out.variables["PYTHONHOME"] = "";
    auto sites = SitesUnder(found.dir);
    sites.insert(sites.end(), system_sites_.begin(), system_sites_.end());
    out.packages = PackagesIn(sites);
    return out;
  }

 private:
  bool over_system() const { return asked_.base == "system"; }

  std::string Key() const {
    // A requirement may be met by the system: the key changes with what is installed there.
    return Sha256Hex(fmt::format("venv 1\n{}\n{}\n{}\n{}\n{}\n{}\n{}", interpreter_.identity,
                                 over_system(), PackagesIn(system_sites_),
                                 WithoutUserInfo(asked_.index_url), InstallerSettings(options_),
                                 requirements_.text,
                                 requirements_.whole_source ? spec_.source.bundle : ""))
        .substr(0, 32);
  }

  Status Build(const std::string& dir) {
    ATHANOR_TRY(auto installer, Installer::Make(options_, asked_.index_url));
    const auto start = SteadyClock::now();
    installer.Say(fmt::format("building a Python environment with {}{}", interpreter_.real,
                              over_system() ? ", over the system's packages" : ""));
    std::vector<std::string> make = {interpreter_.real, "-m", "venv", "--without-pip"};
    if (over_system()) make.emplace_back("--system-site-packages");
    make.push_back(dir);
    ATHANOR_CHECK_OK(installer.Run(make));
    const auto python = JoinPath(dir, "bin/python");
    // Installing pip takes seconds; with the system's packages it is mostly there.
    const bool has_pip =
        over_system() &&
        (asked_.requirements.empty() ||
         installer.Succeeds(
             {python, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('pip'))"}));
    if (!has_pip) ATHANOR_CHECK_OK(installer.Run({python, "-m", "ensurepip", "--default-pip"}));
    if (!asked_.requirements.empty()) {
      installer.Say("installing " + asked_.requirements +
                    (asked_.index_url.empty() ? "" : " from " + asked_.index_url));
      const auto details = JoinPath(dir, "pip.log");
      ATHANOR_CHECK_OK(installer.Run(
          {python, "-m", "pip", "--disable-pip-version-check", "--no-input", "--log", details,
           "install", "-r", JoinPath(options_.source_dir, asked_.requirements)},
          details));
      ::unlink(details.c_str());
    }
    installer.Say("the environment is ready after " +
                  HumanDuration(std::chrono::duration_cast<std::chrono::milliseconds>(
                      SteadyClock::now() - start)));
    return Ok();
  }

  const JobSpec& spec_;
  const EnvironmentSpec& asked_;
  const EnvironmentOptions& options_;
  Interpreter interpreter_;
  std::vector<std::string> system_sites_;
  Requirements requirements_;
};

// The host's packages, but with `python` meaning another interpreter. A link does not work: through
// it, the interpreter of a venv does not find its venv.
Result<BuiltEnvironment> ChooseInterpreter(const EnvironmentSpec& asked,
                                           const EnvironmentOptions& options) {
  ATHANOR_TRY(const auto interpreter, FindInterpreter(asked.python, false, options.base));
  const auto key =
      Sha256Hex(fmt::format("python 1\n{}\n{}", interpreter.path, interpreter.identity));
  const auto build = [&](const std::string& dir) -> Status {
    const auto bin = JoinPath(dir, "bin");
    ATHANOR_CHECK_OK(MakeDirs(bin));
    const auto script = fmt::format("#!/bin/sh\nexec {} \"$@\"\n", ShellQuote(interpreter.path));
    ATHANOR_CHECK_OK(ReplaceFile(JoinPath(bin, "python3"), script, 0755));
    return ReplaceFile(JoinPath(bin, "python"), script, 0755);
  };
  ATHANOR_TRY(
      const auto found,
      FindOrBuild({options.cache_dir, key.substr(0, 32), options.log, options.cancelled}, build));
  BuiltEnvironment out;
  out.dir = found.dir;
  out.cached = !found.built;
  out.variables["PATH"] = found.dir + "/bin:" + PathOf(options.base);
  const auto prefix = DirName(DirName(interpreter.path));
  const bool venv = Exists(JoinPath(prefix, "pyvenv.cfg"));
  if (venv) out.variables["VIRTUAL_ENV"] = prefix;
  out.packages = PackagesIn(venv ? SitesUnder(prefix) : SystemSites(interpreter));
  return out;
}

}  // namespace

Result<BuiltEnvironment> BuildEnvironment(const JobSpec& spec, const EnvironmentOptions& options) {
  const auto& asked = spec.environment;
  ATHANOR_CHECK_OK(RefuseWhatCannotBe(spec));
  if (!asked.conda.empty()) return BuildCondaEnvironment(spec, options);
  if (IsHost(asked) && asked.requirements.empty() && asked.python.empty()) {
    BuiltEnvironment host;
    const auto venv = options.base.find("VIRTUAL_ENV");
    if (venv != options.base.end()) host.packages = PackagesIn(SitesUnder(venv->second));
    return host;
  }
  auto built = IsHost(asked) && asked.requirements.empty() ? ChooseInterpreter(asked, options)
                                                           : Venv(spec, options).FindOrMake();
  if (!built) return NotBuilt(std::move(built).error());
  return built;
}

}  // namespace athanor
