#include "run/agent/captures.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "link/local_job_files.h"

namespace athanor {
namespace {

constexpr char kMeta[] = "meta.json";

// The meta.json of a step: "<step>/meta.json".
bool IsMeta(const std::string& name) {
  return !StartsWith(name, ".") && BaseName(name) == kMeta &&
         std::count(name.begin(), name.end(), '/') == 1;
}

}  // namespace

Result<bool> MoveCapture(int dir, const std::string& name, const std::string& to) {
  (void)RemoveTree(to).ok();
  // If someone reads a link later, they get what it leads to.
  if (::renameat(dir, name.c_str(), AT_FDCWD, to.c_str()) != 0) {
    return FailErrno("move it to " + to, errno);
  }
  ATHANOR_TRY(const auto steps, ListDir(to));
  return std::any_of(steps.begin(), steps.end(), [&](const std::string& step) {
    return !StartsWith(step, ".") && Exists(JoinPath(JoinPath(to, step), kMeta));
  });
}

Result<bool> SendCapture(JobFiles& files, int dir, const std::string& name,
                         const std::string& entry) {
  ATHANOR_TRY(const auto tree, OpenBeneath(dir, name, O_RDONLY | O_DIRECTORY));
  ATHANOR_TRY(auto names, NamesBelow(tree.get()));
  ATHANOR_CHECK_OK(files.Remove(entry));
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& one) { return !IsMeta(one); });
  bool any = false;
  for (const auto& one : names) {
    const auto file = OpenBeneath(tree.get(), one, O_RDONLY | O_NONBLOCK);
    struct stat info {};
    if (!file || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto to = JoinPath(entry, one);
    if (!CheckEntryName(to, true)) continue;  // the script's own invention
    ATHANOR_CHECK_OK(files.Replace(to, file->get()));
    any = any || IsMeta(one);
  }
  return any;
}

}  // namespace athanor
