#include "link/tb_links.h"

#include <unistd.h>

#include <cerrno>

#include "base/io/files.h"
#include "base/text/text.h"
#include "link/job_dir.h"

namespace athanor {
namespace {

constexpr char kParent[] = "tb";

// One component of a path, for any name.
std::string Component(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "_");
  return name.substr(0, 200);
}

std::string TargetOf(JobId job) {
  return std::string("../../jobs/") + job.ToString() + "/" + job_dir::kEvents;
}

std::string ReadLink(const std::string& path) {
  std::string target(4096, '\0');
  const auto n = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return target;
}

}  // namespace

Result<std::string> LinkEvents(const std::string& home, JobId job, const JobSpec& spec) {
  const auto folder = JoinPath(JoinPath(home, kParent),
                               spec.experiment.empty() ? "default" : Component(spec.experiment));
  ATHANOR_CHECK_OK(MakeDirs(folder, 0755));
  const auto id = job.ToString();
  const auto plain = JoinPath(folder, Component(spec.run.empty() ? spec.name : spec.run));
  for (const auto& path : {plain, plain + "-" + id.substr(id.size() - 6), plain + "-" + id}) {
    if (::symlink(TargetOf(job).c_str(), path.c_str()) == 0) return path;
    if (errno != EEXIST) return FailErrno("link " + path, errno);
    if (ReadLink(path) == TargetOf(job)) return path;
  }
  return Fail(ErrorCode::kConflict, "link " + plain + ": other things have its names");
}

void UnlinkEvents(const std::string& home, JobId job) {
  const auto parent = JoinPath(home, kParent);
  const auto folders = ListDir(parent);
  if (!folders) return;
  for (const auto& folder : *folders) {
    const auto path = JoinPath(parent, folder);
    for (const auto& name : ListDir(path).value_or(std::vector<std::string>())) {
      const auto link = JoinPath(path, name);
      if (ReadLink(link) == TargetOf(job)) ::unlink(link.c_str());
    }
    ::rmdir(path.c_str());  // not while others are in it
  }
}

}  // namespace athanor
