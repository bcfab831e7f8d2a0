#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "cli/package_check.h"
#include "cli/screen/output.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "serve/home.h"
#include "serve/version.h"

namespace athanor {

int VersionVerb(const Common& common, bool verify) {
  Json out = {{"version", kVersion}};
  if (!verify) {
    std::puts(common.json ? out.dump().c_str() : (std::string("athanor ") + kVersion).c_str());
    return 0;
  }
  const auto check = CheckPackage(ProgramPath());
  if (!check) return Refuse(check.error(), common.json);
  const bool whole = check->missing.empty() && check->changed.empty();
  if (common.json) {
    out["files"] = check->files;
    out["manifest"] = check->manifest;
    out["missing"] = check->missing;
    out["changed"] = check->changed;
    std::puts(out.dump().c_str());
    return whole ? 0 : 1;
  }
  std::printf("athanor %s\n", kVersion);
  if (whole) {
    std::printf("all %zu files are as packaged\n", check->files);
    return 0;
  }
  for (const auto& path : check->missing) std::printf("  missing  %s\n", path.c_str());
  for (const auto& path : check->changed) std::printf("  changed  %s\n", path.c_str());
  std::printf("%zu of %zu files are not as packaged; install the package again\n",
              check->missing.size() + check->changed.size(), check->files);
  return 1;
}

}  // namespace athanor
