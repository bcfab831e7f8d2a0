#include "run/supervisor/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace athanor {
namespace {

constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"};
constexpr std::string_view kWrappers[] = {
    "env",    "timeout", "nice",    "nohup",   "xargs", "stdbuf",    "time", "setsid",    "flock",
    "ionice", "chrt",    "taskset", "numactl", "tini",  "dumb-init", "uv",   "micromamba"};
constexpr std::string_view kFilters[] = {"tee", "cat", "grep", "sed",  "awk",  "mawk", "gawk",
                                         "ts",  "tr",  "head", "tail", "sort", "less"};
constexpr std::string_view kSavers[] = {"cp",     "mv",     "rm",    "ln",   "mkdir", "chmod",
                                        "chown",  "tar",    "gzip",  "zstd", "xz",    "zip",
                                        "sync",   "rsync",  "scp",   "dd",   "aws",   "gsutil",
                                        "gcloud", "rclone", "s5cmd", "curl", "wget"};

constexpr uint64_t kExiting = 4;  // PF_EXITING of the kernel's flags

template <size_t N>
bool Among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string ReadSmall(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  ssize_t n;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(n));
  ::close(fd);
  return text;
}

std::string PathOf(const std::string& proc, int pid, const char* file) {
  return proc + "/" + std::to_string(pid) + "/" + file;
}

struct Walk {
  const std::vector<ProcessInfo>& all;
  const std::function<ProcessTraits(int)>& traits_of;
  const std::function<bool(const ProcessInfo&)>& spare;
  std::vector<StopTarget> targets;

  void Down(const ProcessInfo& self, StopTarget::Kind kind, int depth);
};

void Walk::Down(const ProcessInfo& self, StopTarget::Kind kind, int depth) {
  const ProcessTraits traits = traits_of(self.pid);
  // By the file that runs, else by the name shown: a script started through its #! line has its own
  // name but runs in a shell.
  const std::string_view name = traits.exe.empty() ? self.comm : traits.exe;
  const bool shell = Among(kShells, name);
  if (shell && traits.catches_term && spare && spare(self)) return;
  std::vector<const ProcessInfo*> programs;
  std::vector<const ProcessInfo*> filters;
  const bool front = shell || Among(kWrappers, name);
  if (front && depth < 16) {
    for (const auto& process : all) {
      if (process.ppid != self.pid || process.state == 'Z') continue;
      (Among(kFilters, process.comm) ? filters : programs).push_back(&process);
    }
  }
  if (programs.empty() && filters.empty()) {
    targets.push_back({self.pid, self.start_ticks, front ? StopTarget::Kind::kIdle : kind});
    return;
  }
  for (const ProcessInfo* child : programs) {
    Down(*child,
         Among(kSavers, child->comm) ? StopTarget::Kind::kSaver : StopTarget::Kind::kProgram,
         depth + 1);
  }
  if (programs.empty()) {
    for (const ProcessInfo* child : filters) Down(*child, StopTarget::Kind::kFilter, depth + 1);
  }
  // timeout catches it to forward it, which would give the program a second one.
  if (shell && traits.catches_term) {
    targets.push_back({self.pid, self.start_ticks, StopTarget::Kind::kTrap});
  }
}

}  // namespace

bool ParseProcStat(std::string_view line, ProcessInfo* info) {
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == line.npos || close == line.npos || close < open) return false;
  *info = ProcessInfo();
  info->comm = line.substr(open + 1, close - open - 1);
  if (std::from_chars(line.data(), line.data() + open, info->pid).ec != std::errc()) return false;
  uint64_t fields[25] = {};  // by their numbers in proc(5)
  const char* at = line.data() + close + 1;
  const char* end = line.data() + line.size();
  for (int field = 3; field <= 24; ++field) {
    while (at < end && *at == ' ') ++at;
    if (at >= end) return false;
    if (field == 3) {
      info->state = *at++;
      continue;
    }
    int64_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    // Some fields are wider than int64; only those used must be numbers.
    fields[field] = parsed.ec == std::errc() ? static_cast<uint64_t>(number) : 0;
    while (at < end && *at != ' ') ++at;
  }
  info->ppid = static_cast<int>(fields[4]);
  info->exiting = (fields[9] & kExiting) != 0;
  info->minor_faults = fields[10];
  info->cpu_ticks = fields[14] + fields[15];
  info->start_ticks = fields[22];
  info->rss_pages = fields[24];
  return true;
}

bool ReadProcess(const std::string& proc, int pid, ProcessInfo* info) {
  return ParseProcStat(ReadSmall(PathOf(proc, pid, "stat")), info);
}

std::vector<ProcessInfo> ListProcesses(const std::string& proc) {
  std::vector<ProcessInfo> all;
  DIR* dir = ::opendir(proc.c_str());
  if (dir == nullptr) return all;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    ProcessInfo info;
    if (ReadProcess(proc, std::atoi(entry->d_name), &info)) all.push_back(std::move(info));
  }
  ::closedir(dir);
  return all;
}

std::vector<ProcessInfo> DescendantsOf(const std::vector<ProcessInfo>& all, int root) {
  std::vector<ProcessInfo> found;
  std::vector<int> parents{root};
  // Each process has one parent, so none is visited twice even if the list is torn.
  std::vector<bool> taken(all.size(), false);
  for (size_t next = 0; next < parents.size(); ++next) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (taken[i] || all[i].ppid != parents[next] || all[i].pid == root) continue;
      taken[i] = true;
      parents.push_back(all[i].pid);
      found.push_back(all[i]);
    }
  }
  return found;
}

bool ChildrenLive(int parent, const std::string& proc) {
  bool any = false;
  for (const auto& process : ListProcesses(proc)) {
    if (process.ppid != parent) continue;
    if (process.state == 'Z' || process.exiting) return false;
    any = true;
  }
  return any;
}

ProcessTraits ReadTraits(const std::string& proc, int pid) {
  ProcessTraits traits;
  char link[4096];
  const ssize_t n = ::readlink(PathOf(proc, pid, "exe").c_str(), link, sizeof link);
  if (n > 0) {
    const std::string_view path(link, static_cast<size_t>(n));
    traits.exe = path.substr(path.rfind('/') + 1);
  }
  const std::string status = ReadSmall(PathOf(proc, pid, "status"));
  const size_t at = status.find("\nSigCgt:");
  if (at != status.npos) {
    const uint64_t caught = std::strtoull(status.c_str() + at + 8, nullptr, 16);
    traits.catches_term = (caught >> (SIGTERM - 1)) & 1;
  }
  return traits;
}

std::vector<StopTarget> StopTargets(const std::vector<ProcessInfo>& all, int rank_pid,
                                    const std::function<ProcessTraits(int)>& traits_of,
                                    const std::function<bool(const ProcessInfo&)>& spare) {
  Walk walk{all, traits_of, spare, {}};
  const auto top =
      std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.pid == rank_pid; });
  ProcessInfo unlisted;
  unlisted.pid = rank_pid;
  walk.Down(top == all.end() ? unlisted : *top, StopTarget::Kind::kProgram, 0);
  return walk.targets;
}

}  // namespace athanor
