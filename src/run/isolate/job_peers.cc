#include "run/isolate/job_peers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "base/io/fd.h"
#include "run/supervisor/process_tree.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {
namespace {

constexpr int kTries = 3;
constexpr int kDeepest = 10'000;
constexpr size_t kMostRecent = 16;

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

bool RunsUsersCode(std::string_view name) {
  return name == kSupervisorName || name == kWaitsForRoomName || name == kAgentName ||
         name == kExecName;
}

// The process and its ancestors. None: one of them ended meanwhile, and its children have another
// parent now.
std::optional<std::vector<ProcessInfo>> LineOf(pid_t pid) {
  std::vector<ProcessInfo> line;
  while (pid > 0) {
    ProcessInfo info;
    if (line.size() > kDeepest || !ReadProcess("/proc", pid, &info)) return std::nullopt;
    // No process is older than its parent: this one reused the pid of the one that was meant.
    if (!line.empty() && info.start_ticks > line.back().start_ticks) return std::nullopt;
    pid = info.ppid;
    line.push_back(std::move(info));
  }
  return line;
}

bool IsAboveUs(pid_t pid) {
  const auto line = LineOf(::getpid());
  return line && std::any_of(line->begin(), line->end(),
                             [pid](const ProcessInfo& above) { return above.pid == pid; });
}

std::vector<pid_t> YoungestFirst() {
  std::vector<pid_t> pids;
  const Dir dir(::opendir("/proc"));
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
      pids.push_back(std::atoi(entry->d_name));
  }
  std::sort(pids.begin(), pids.end(), std::greater<>());
  return pids;
}

// Calls `held` with the inode of each socket among the descriptors.
void ForEachSocket(pid_t pid, uint32_t uid, const std::function<void(uint64_t inode)>& held) {
  const std::string path = "/proc/" + std::to_string(pid);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || info.st_uid != uid) return;
  const Dir dir(::opendir((path + "/fd").c_str()));
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    constexpr std::string_view kSocket = "socket:[";
    char text[64];
    const auto size = ::readlinkat(::dirfd(dir.get()), entry->d_name, text, sizeof text);
    if (size <= 0) continue;
    const std::string_view link(text, static_cast<size_t>(size));
    if (link.substr(0, kSocket.size()) != kSocket) continue;
    uint64_t inode = 0;
    const char* begin = link.data() + kSocket.size();
    if (std::from_chars(begin, link.data() + link.size(), inode).ec == std::errc()) held(inode);
  }
}

bool IsEmptyDir(const std::string& path) {
  const Dir dir(::opendir(path.c_str()));
  if (!dir) return errno == ENOENT;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return false;
  }
  return true;
}

}  // namespace

void NameThisProcess(const char* name) { (void)::prctl(PR_SET_NAME, name, 0, 0, 0); }

bool IsInsideJob(pid_t pid) {
  for (int tries = 0; tries < kTries; ++tries) {
    const auto line = LineOf(pid);
    if (!line || line->empty()) continue;
    return std::any_of(line->begin(), line->end(), [](const ProcessInfo& above) {
      return RunsUsersCode(above.comm) && !IsAboveUs(above.pid);
    });
  }
  return true;
}

std::map<uint64_t, pid_t> HoldersOutside(const std::vector<uint64_t>& inodes, uint32_t uid,
                                         const std::vector<pid_t>& first) {
  std::map<uint64_t, pid_t> outside;
  std::set<uint64_t> wanted(inodes.begin(), inodes.end());
  const auto look_in = [&](const std::vector<pid_t>& pids) {
    for (const pid_t pid : pids) {
      if (wanted.empty()) return;
      std::optional<bool> inside;  // asked for holders only
      ForEachSocket(pid, uid, [&](uint64_t inode) {
        if (wanted.erase(inode) == 0) return;
        if (!inside) inside = IsInsideJob(pid);
        if (!*inside) outside.emplace(inode, pid);
      });
    }
  };
  look_in(first);
  if (!wanted.empty()) look_in(YoungestFirst());
  return outside;
}

JobPeers::JobPeers(Executor& executor, Pool& pool, std::string attempts_dir)
    : executor_(executor), pool_(pool), attempts_dir_(std::move(attempts_dir)) {}

void JobPeers::Judge(const Peer& peer, std::function<void(bool outside)> done) {
  if (peer.pid) return done(*peer.pid > 0 && !IsInsideJob(*peer.pid));
  if (!peer.inode || !peer.uid) return done(false);
  if (IsEmptyDir(attempts_dir_)) return done(true);
  waiting_.push_back({*peer.inode, *peer.uid, std::move(done)});
  if (!looking_) Look();
}

void JobPeers::Found(pid_t holder) {
  std::erase(recent_, holder);
  recent_.insert(recent_.begin(), holder);
  if (recent_.size() > kMostRecent) recent_.pop_back();
}

void JobPeers::Look() {
  auto asked = std::make_shared<std::vector<Asker>>(std::exchange(waiting_, {}));
  looking_ = pool_.Submit([this, asked, recent = recent_] {
    std::map<uint32_t, std::vector<uint64_t>> by_uid;
    for (const auto& one : *asked) by_uid[one.uid].push_back(one.inode);
    std::map<uint64_t, pid_t> outside;
    for (const auto& [uid, inodes] : by_uid) outside.merge(HoldersOutside(inodes, uid, recent));
    executor_.Post([this, asked, outside = std::move(outside)] {
      looking_ = false;
      for (const auto& [inode, holder] : outside) Found(holder);
      for (auto& one : *asked) one.done(outside.contains(one.inode));
      if (!looking_ && !waiting_.empty()) Look();
    });
  });
  // The server stops: no one gets an answer any more.
  if (!looking_) {
    for (auto& one : *asked) one.done(false);
  }
}

}  // namespace athanor
