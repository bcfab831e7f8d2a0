#include "run/supervisor/oom_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/io/fd.h"

namespace athanor {
namespace {

constexpr std::string_view kMark = "oom-kill:";
constexpr std::string_view kGroup = ",task_memcg=";
constexpr std::string_view kTask = ",task=";
constexpr std::string_view kPid = ",pid=";
// The largest record that the kernel hands out.
constexpr size_t kMostRecord = 8192;
// More records than any log holds: an end, whatever is read.
constexpr int kMostReads = 1 << 18;

}  // namespace

std::optional<OomKill> ParseOomKill(std::string_view record) {
  const size_t begin = record.find(kMark);
  if (begin == record.npos) return std::nullopt;
  record.remove_prefix(begin);
  record = record.substr(0, record.find('\n'));
  const size_t group = record.find(kGroup);
  const size_t task = record.find(kTask, group == record.npos ? 0 : group + kGroup.size());
  // From the end: a process's name may look like what follows it.
  const size_t pid = record.rfind(kPid);
  if (group == record.npos || task == record.npos || pid == record.npos ||
      pid < task + kTask.size()) {
    return std::nullopt;
  }
  OomKill kill;
  kill.cgroup = record.substr(group + kGroup.size(), task - group - kGroup.size());
  kill.name = record.substr(task + kTask.size(), pid - task - kTask.size());
  const std::string_view number = record.substr(pid + kPid.size());
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), kill.pid);
  if (parsed.ec != std::errc() || kill.pid <= 0) return std::nullopt;
  return kill;
}

std::optional<OomKill> FindOomKill(std::string_view cgroup_name, const std::string& log) {
  const UniqueFd fd(::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return std::nullopt;
  const std::string ending = "/" + std::string(cgroup_name);
  std::optional<OomKill> newest;
  std::string record(kMostRecord, '\0');
  // Each read gives one record; EPIPE says that some were overwritten meanwhile.
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t n = ::read(fd.get(), record.data(), record.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    auto kill = ParseOomKill(std::string_view(record).substr(0, static_cast<size_t>(n)));
    if (kill && kill->cgroup.size() >= ending.size() &&
        kill->cgroup.compare(kill->cgroup.size() - ending.size(), ending.size(), ending) == 0) {
      newest = std::move(kill);
    }
  }
  return newest;
}

}  // namespace athanor
