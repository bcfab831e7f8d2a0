#include "run/environment/conda.h"

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "run/environment/environment_cache.h"
#include "run/environment/installer.h"
#include "run/environment/interpreter.h"
#include "run/environment/requirements.h"

namespace athanor {
namespace {

struct Tool {
  std::string name;
  std::string path;
};

Result<Tool> FindTool(const EnvironmentOptions& options) {
  for (const std::string name : {"micromamba", "mamba", "conda"}) {
    auto path = FindProgram(name, PathOf(options.base));
    if (!path.empty()) return Tool{name, std::move(path)};
  }
  return NotBuilt(
      Error{ErrorCode::kNotFound, "",
            "install micromamba, or list the packages in a requirements file:\n"
            "environment: {requirements: requirements.txt}"}
          .Why("a conda file needs micromamba, mamba or conda, and none is on the PATH"));
}

// Records are <name>-<version>-<build>.json; pip's own packages are found as usual.
std::string CondaPackages(const std::string& dir) {
  std::string text;
  const auto records = ListDir(JoinPath(dir, "conda-meta"));
  if (records) {
    for (const auto& record : *records) {
      const size_t build = EndsWith(record, ".json") ? record.rfind('-') : std::string::npos;
      if (build == std::string::npos || build == 0) continue;
      const size_t version = record.rfind('-', build - 1);
      if (version == std::string::npos) continue;
      text += record.substr(0, version) + "==" + record.substr(version + 1, build - version - 1) +
              " (conda)\n";
    }
  }
  return text + PackagesIn(SitesUnder(dir));
}

}  // namespace

Result<BuiltEnvironment> BuildCondaEnvironment(const JobSpec& spec,
                                               const EnvironmentOptions& options) {
  const auto& asked = spec.environment;
  ATHANOR_TRY(const auto tool, FindTool(options));
  ATHANOR_TRY(const auto source, OpenDir(options.source_dir));
  auto wanted = ReadCondaFile(source.get(), asked.conda);
  if (!wanted) return NotBuilt(std::move(wanted).error());
  const auto key =
      Sha256Hex(fmt::format("conda 1\n{}\n{}\n{}\n{}", tool.path, WithoutUserInfo(asked.index_url),
                            wanted->text, wanted->whole_source ? spec.source.bundle : ""));
  const auto build = [&](const std::string& dir) -> Status {
    ATHANOR_TRY(auto installer, Installer::Make(options, asked.index_url));
    installer.Say(fmt::format("building an environment from {} with {}", asked.conda, tool.path));
    const auto file = JoinPath(options.source_dir, asked.conda);
    if (tool.name != "micromamba") {
      return installer.Run({tool.path, "env", "create", "--prefix", dir, "--file", file});
    }
    // If unset, it would store its packages in a folder of its choice in the home.
    return installer.Run({tool.path, "create", "--yes", "--root-prefix",
                          JoinPath(options.cache_dir, "mamba"), "--prefix", dir, "--file", file});
  };
  auto found =
      FindOrBuild({options.cache_dir, key.substr(0, 32), options.log, options.cancelled}, build);
  if (!found) return NotBuilt(std::move(found).error());
  BuiltEnvironment out;
  out.dir = found->dir;
  out.cached = !found->built;
  out.variables["PATH"] = found->dir + "/bin:" + PathOf(options.base);
  out.variables["CONDA_PREFIX"] = found->dir;
  out.variables["CONDA_DEFAULT_ENV"] = found->dir;
  // Python treats an empty one as unset.
  for (const std::string name : {"PYTHONHOME", "VIRTUAL_ENV"}) {
    if (options.base.contains(name)) out.variables[name] = "";
  }
  out.packages = CondaPackages(found->dir);
  return out;
}

}  // namespace athanor
