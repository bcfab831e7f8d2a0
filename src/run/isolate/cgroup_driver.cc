#include "run/isolate/cgroup_driver.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;

constexpr int kKillRounds = 200;
constexpr int kRemoveRounds = 100;
constexpr std::string_view kKnown[] = {"memory", "cpu", "cpuacct", "pids"};

bool Contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                        (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

struct MountLine {
  std::string root;
  std::string point;
  std::string type;
  std::vector<std::string> options;
};

std::vector<MountLine> ReadMounts(const std::string& text) {
  std::vector<MountLine> mounts;
  for (const auto& line : Split(text, '\n')) {
    const auto words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 10 || words.end() - dash < 4) continue;
    if (*(dash + 1) != "cgroup" && *(dash + 1) != "cgroup2") continue;
    mounts.push_back(
        {Unescape(words[3]), Unescape(words[4]), *(dash + 1), Split(*(dash + 3), ',')});
  }
  return mounts;
}

// The path of /proc/self/cgroup for a v1 controller, or for v2 ("").
std::string OwnPath(const std::string& text, std::string_view controller) {
  for (const auto& line : Split(text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? names.empty() : Contains(Split(names, ','), controller)) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

// A container's mount shows only the part of the tree below `mount_root`.
std::string OwnDir(const std::string& point, const std::string& mount_root, std::string path) {
  if (mount_root != "/" && (path == mount_root || StartsWith(path, mount_root + "/"))) {
    path = path.substr(mount_root.size());
  }
  while (!path.empty() && path.back() == '/') path.pop_back();
  // "/../x" is outside of what our cgroup namespace shows.
  if (path.empty() || StartsWith(path + "/", "/../")) return point;
  return point + path;
}

std::string ParentOf(const std::string& dir) { return dir.substr(0, dir.rfind('/')); }

void SetOwnDir(CgroupHierarchy& hierarchy, const std::string& mount_root, std::string path) {
  hierarchy.own_dir = OwnDir(hierarchy.mount_point, mount_root, std::move(path));
  hierarchy.in_start_lane = BaseName(hierarchy.own_dir) == kStartLane;
  if (hierarchy.in_start_lane) hierarchy.own_dir = ParentOf(hierarchy.own_dir);
}

// What a v2 directory may enable in its children.
std::vector<std::string> Offered(const std::string& dir) {
  std::vector<std::string> controllers;
  const auto text = CgroupDriver::Read(dir, "cgroup.controllers").value_or("");
  for (auto& name : Split(Trim(text), ' ')) {
    if (!name.empty()) controllers.push_back(std::move(name));
  }
  return controllers;
}

bool LacksKnown(const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](std::string_view name) {
    return Contains(theirs, name) && !Contains(ours, name);
  });
}

}  // namespace

CgroupDriver CgroupDriver::Detect(const std::string& root) {
  CgroupDriver driver;
  const std::string mountinfo = ReadFile(root + "/proc/self/mountinfo").value_or("");
  const std::string cgroup = ReadFile(root + "/proc/self/cgroup").value_or("");
  for (const auto& mount : ReadMounts(mountinfo)) {
    CgroupHierarchy hierarchy;
    hierarchy.mount_point = root + mount.point;
    if (mount.type == "cgroup2") {
      SetOwnDir(hierarchy, mount.root, OwnPath(cgroup, ""));
      hierarchy.controllers = Offered(hierarchy.own_dir);
      // The root may still have controllers that a session's cgroup was not given, if we may make
      // cgroups there.
      auto above = Offered(hierarchy.mount_point);
      if (LacksKnown(hierarchy.controllers, above) &&
          ::access((hierarchy.mount_point + "/cgroup.subtree_control").c_str(), W_OK) == 0) {
        hierarchy.own_dir = hierarchy.mount_point;
        hierarchy.controllers = std::move(above);
      }
      // v2 counts CPU time of every cgroup, as part of "cpu".
      if (Contains(hierarchy.controllers, "cpu")) hierarchy.controllers.emplace_back("cpuacct");
    } else {
      hierarchy.version = 1;
      for (std::string_view name : kKnown) {
        if (Contains(mount.options, name)) hierarchy.controllers.emplace_back(name);
      }
      if (hierarchy.controllers.empty()) continue;
      SetOwnDir(hierarchy, mount.root, OwnPath(cgroup, hierarchy.controllers.front()));
    }
    const bool again = std::any_of(
        driver.hierarchies_.begin(), driver.hierarchies_.end(), [&](const CgroupHierarchy& other) {
          return other.version == hierarchy.version && other.controllers == hierarchy.controllers;
        });
    if (!again) driver.hierarchies_.push_back(std::move(hierarchy));
  }
  return driver;
}

const CgroupHierarchy* CgroupDriver::Find(std::string_view controller) const {
  for (int version : {1, 2}) {
    for (const auto& hierarchy : hierarchies_) {
      if (hierarchy.version == version && Contains(hierarchy.controllers, controller)) {
        return &hierarchy;
      }
    }
  }
  return nullptr;
}

const CgroupHierarchy* CgroupDriver::Unified() const {
  for (const auto& hierarchy : hierarchies_) {
    if (hierarchy.version == 2) return &hierarchy;
  }
  return nullptr;
}

Status CgroupDriver::Make(const CgroupHierarchy& hierarchy, const std::string& dir,
                          const std::vector<std::string>& controllers) {
  // From our own downwards: v2 passes controllers on through the parent's cgroup.subtree_control,
  // so each parent is changed before its child is created.
  std::vector<std::string> chain;
  for (std::string at = dir; at.size() >= hierarchy.own_dir.size(); at = ParentOf(at)) {
    chain.push_back(at);
    if (at == hierarchy.own_dir || at == hierarchy.mount_point) break;
  }
  std::reverse(chain.begin(), chain.end());
  for (const auto& at : chain) {
    if (::mkdir(at.c_str(), 0755) != 0 && errno != EEXIST) {
      return FailErrno("make cgroup " + at, errno);
    }
    if (hierarchy.version == 1 || at == dir) continue;
    const std::string enabled = Read(at, "cgroup.subtree_control").value_or("");
    for (const auto& controller : controllers) {
      if (controller == "cpuacct" || Contains(Split(Trim(enabled), ' '), controller)) continue;
      ATHANOR_CHECK_OK(Write(at, "cgroup.subtree_control", "+" + controller));
    }
  }
  return Ok();
}

Status CgroupDriver::Write(const std::string& dir, std::string_view file, std::string_view value) {
  const std::string path = JoinPath(dir, file);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open " + path, errno);
  if (::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size())) {
    return Ok();
  }
  const ErrorCode code = errno == EBUSY ? ErrorCode::kConflict : ErrorCode::kUnavailable;
  return FailErrno("write " + std::string(value) + " to " + path, errno, code);
}

Result<std::string> CgroupDriver::Read(const std::string& dir, std::string_view file) {
  return ReadFile(JoinPath(dir, file), 1 << 20);
}

Result<uint64_t> CgroupDriver::ReadNumber(const std::string& dir, std::string_view file) {
  ATHANOR_TRY(const std::string text, Read(dir, file));
  const std::string_view trimmed = Trim(text);
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error != std::errc() || end != trimmed.data() + trimmed.size()) {
    return Fail(ErrorCode::kCorrupt, JoinPath(dir, file) + " is not a number");
  }
  return number;
}

Result<uint64_t> CgroupDriver::ReadKeyed(const std::string& dir, std::string_view file,
                                         std::string_view key) {
  ATHANOR_TRY(const std::string text, Read(dir, file));
  for (const auto& line : Split(text, '\n')) {
    const auto words = Split(line, ' ');
    uint64_t number = 0;
    if (words.size() != 2 || words[0] != key) continue;
    const auto& word = words[1];
    if (std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc()) {
      return number;
    }
  }
  return Fail(ErrorCode::kNotFound, JoinPath(dir, file) + " has no " + std::string(key));
}

Result<std::vector<int>> CgroupDriver::Processes(const std::string& dir) {
  ATHANOR_TRY(const std::string text, ReadFile(JoinPath(dir, "cgroup.procs")));
  std::vector<int> pids;
  for (const auto& line : Split(text, '\n')) {
    int pid = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), pid).ec == std::errc() && pid > 0) {
      pids.push_back(pid);
    }
  }
  return pids;
}

Status CgroupDriver::Kill(const std::string& dir) {
  const bool atomic = Write(dir, "cgroup.kill", "1").ok();
  for (int round = 0; round < kKillRounds; ++round) {
    const auto pids = Processes(dir);
    if (!pids && pids.error().code == ErrorCode::kNotFound) return Ok();
    if (!pids) return Fail(pids.error());
    if (pids->empty()) return Ok();
    for (int pid : *pids) {
      if (!atomic) (void)::kill(pid, SIGKILL);
    }
    // Dead processes leave the list only when they are through exit(2).
    std::this_thread::sleep_for(milliseconds(round < 10 ? 1 : 20));
  }
  return Fail(ErrorCode::kTimeout, "processes of cgroup " + dir + " do not end");
}

Status CgroupDriver::Remove(const std::string& dir) {
  for (int round = 0;; ++round) {
    if (::rmdir(dir.c_str()) == 0 || errno == ENOENT) return Ok();
    if (errno != EBUSY || round >= kRemoveRounds) return FailErrno("remove cgroup " + dir, errno);
    std::this_thread::sleep_for(milliseconds(round < 10 ? 1 : 10));
  }
}

}  // namespace athanor
