#include "cli/package_check.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {

Result<PackageCheck> CheckPackage(const std::string& program) {
  const std::string prefix = DirName(DirName(program));
  PackageCheck check;
  check.manifest = JoinPath(prefix, "lib/athanor/manifest.sha256");
  if (!Exists(check.manifest)) {
    return Fail(ErrorCode::kNotFound,
                "there is no package to verify: " + program + " was built from source",
                "tools/package    makes packages from source");
  }
  ATHANOR_TRY(const auto text, ReadFile(check.manifest, 1 << 20));
  for (const auto& line : Split(text, '\n')) {
    if (line.empty()) continue;
    const auto gap = line.find("  ");
    if (gap != 64) {
      return Fail(ErrorCode::kCorrupt, "the package's list of files is damaged: " + check.manifest,
                  "install the package again");
    }
    const std::string path(line.substr(gap + 2));
    ++check.files;
    const UniqueFd file(::open(JoinPath(prefix, path).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      check.missing.push_back(path);
      continue;
    }
    ATHANOR_TRY(const auto digest, Sha256File(file.get()));
    if (digest != line.substr(0, gap)) check.changed.push_back(path);
  }
  return check;
}

}  // namespace athanor
