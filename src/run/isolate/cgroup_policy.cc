#include "run/isolate/cgroup_policy.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr uint64_t kCpuPeriodUs = 100'000;
constexpr uint64_t kLeastQuotaUs = 1'000;  // the kernel's
// v1 checks memory + swap first and counts nothing if that is full; a little more there makes
// memory.failcnt count.
constexpr uint64_t kSwapSlack = 1 << 20;

bool Contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Why a user does not get a limit, and what happens then.
std::string Consequence(std::string_view controller) {
  if (controller == "memory") return "memory limit: off, the job may use all memory";
  if (controller == "cpu") return "CPU limit: off, the job may use all cores";
  if (controller == "cpuacct") return "CPU accounting: off, usage comes from /proc";
  return "process limit: off, the job may start any number";
}

std::string WhoHasNone() { return ::geteuid() == 0 ? "here" : "for this user"; }

std::string WhyNoCgroup() { return " (no cgroup " + WhoHasNone() + ")"; }

Status SetMemory(const CgroupJoin& join, const CgroupLimits& limits) {
  if (limits.memory_bytes == 0) return Ok();
  const std::string bytes = std::to_string(limits.memory_bytes);
  if (join.version == 2) {
    ATHANOR_CHECK_OK(CgroupDriver::Write(join.dir, "memory.max", bytes));
    // Absent when the kernel does not account swap.
    if (limits.no_swap && Exists(JoinPath(join.dir, "memory.swap.max"))) {
      return CgroupDriver::Write(join.dir, "memory.swap.max", "0");
    }
    return Ok();
  }
  // v1 keeps limit <= memsw at every moment: raise memsw first if the same attempt is prepared
  // again with more.
  const bool swap = Exists(JoinPath(join.dir, "memory.memsw.limit_in_bytes"));
  if (swap) (void)CgroupDriver::Write(join.dir, "memory.memsw.limit_in_bytes", "-1");
  ATHANOR_CHECK_OK(CgroupDriver::Write(join.dir, "memory.limit_in_bytes", bytes));
  if (!limits.no_swap || !swap) return Ok();
  return CgroupDriver::Write(join.dir, "memory.memsw.limit_in_bytes",
                             std::to_string(limits.memory_bytes + kSwapSlack));
}

Status SetCpu(const CgroupJoin& join, const CgroupLimits& limits) {
  if (limits.cpus <= 0) return Ok();
  const auto quota = std::max(
      kLeastQuotaUs, static_cast<uint64_t>(std::llround(limits.cpus * double{kCpuPeriodUs})));
  if (join.version == 2) {
    return CgroupDriver::Write(join.dir, "cpu.max",
                               std::to_string(quota) + " " + std::to_string(kCpuPeriodUs));
  }
  ATHANOR_CHECK_OK(
      CgroupDriver::Write(join.dir, "cpu.cfs_period_us", std::to_string(kCpuPeriodUs)));
  return CgroupDriver::Write(join.dir, "cpu.cfs_quota_us", std::to_string(quota));
}

Status SetOne(const CgroupJoin& join, std::string_view controller, const CgroupLimits& limits) {
  if (controller == "memory") return SetMemory(join, limits);
  if (controller == "cpu") return SetCpu(join, limits);
  if (controller == "pids" && limits.pids > 0) {
    return CgroupDriver::Write(join.dir, "pids.max", std::to_string(limits.pids));
  }
  return Ok();
}

// With real-time group scheduling a v1 cpu cgroup takes a real-time process only if it has a
// real-time budget, and a new one has none. Ours would have to be taken from our parent's.
bool RefusesRealTime(const CgroupJoin& join) {
  const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (join.version != 1 || (policy != SCHED_FIFO && policy != SCHED_RR)) return false;
  const auto budget = CgroupDriver::ReadNumber(join.dir, "cpu.rt_runtime_us");
  return budget && *budget == 0;
}

// v2 refuses to pass controllers on from a cgroup that contains processes. Root goes below the root
// cgroup, which is exempt; a user who was given its cgroup (and owns the directory) moves all
// processes in it to a leaf.
Status MakeUnified(CgroupHierarchy hierarchy, const std::string& name,
                   const std::vector<std::string>& controllers, std::string* dir) {
  *dir = hierarchy.own_dir + "/athanor/" + name;
  Status made = CgroupDriver::Make(hierarchy, *dir, controllers);
  if (made.ok() || made.error().code != ErrorCode::kConflict) return made;
  if (::geteuid() == 0 && hierarchy.own_dir != hierarchy.mount_point) {
    hierarchy.own_dir = hierarchy.mount_point;
    *dir = hierarchy.own_dir + "/athanor/" + name;
    return CgroupDriver::Make(hierarchy, *dir, controllers);
  }
  struct stat info {};
  if (::stat(hierarchy.own_dir.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return made;
  const std::string leaf = hierarchy.own_dir + "/athanor-host";
  ATHANOR_CHECK_OK(CgroupDriver::Make(hierarchy, leaf, {}));
  ATHANOR_TRY(const auto pids, CgroupDriver::Processes(hierarchy.own_dir));
  for (int pid : pids) {
    (void)CgroupDriver::Write(leaf, "cgroup.procs", std::to_string(pid));
  }
  return CgroupDriver::Make(hierarchy, *dir, controllers);
}

// What the job asked for and no cgroup holds, in one line; empty: nothing.
std::string LimitsNotInCgroup(const AttemptCgroup& cgroup, const CgroupLimits& asked) {
  const bool memory = asked.memory_bytes > 0 && cgroup.Lacks("memory");
  const bool cpus = asked.cpus > 0 && cgroup.Lacks("cpu");
  if (!memory && !cpus) return {};
  std::vector<std::string> parts;
  const std::string why = WhyNoCgroup();
  if (memory)
    parts.push_back("memory " + HumanBytes(asked.memory_bytes) + " held by a watch" + why);
  if (cpus) parts.push_back("CPUs not limited" + (memory ? std::string() : why));
  if (cgroup.Lacks("pids")) parts.emplace_back("processes not limited");
  return Join(parts, "; ");
}

}  // namespace

bool AttemptCgroup::Lacks(std::string_view controller) const { return Contains(lacks, controller); }

const CgroupJoin* AttemptCgroup::Find(std::string_view controller) const {
  for (const auto& join : joins) {
    if (Contains(join.controllers, controller)) return &join;
  }
  return nullptr;
}

AttemptCgroup PrepareAttemptCgroup(const CgroupDriver& driver, const std::string& name,
                                   const CgroupLimits& limits) {
  AttemptCgroup cgroup;
  const auto lack = [&cgroup](std::string_view controller, const std::string& why) {
    cgroup.off.push_back(Consequence(controller) + " (" + why + ")");
    cgroup.lacks.emplace_back(controller);
  };
  constexpr std::string_view kWanted[] = {"memory", "cpu", "cpuacct", "pids"};
  if (!CheckRelativeName(name).ok() || name.find('/') != name.npos) {
    cgroup.off.push_back("limits: off, '" + name + "' cannot name a cgroup");
    cgroup.lacks.assign(std::begin(kWanted), std::end(kWanted));
    return cgroup;
  }
  // One directory per hierarchy, however many controllers it has.
  std::vector<std::pair<const CgroupHierarchy*, std::vector<std::string>>> needed;
  for (std::string_view controller : kWanted) {
    const CgroupHierarchy* hierarchy = driver.Find(controller);
    if (hierarchy == nullptr) {
      lack(controller, "no such cgroup controller here");
      continue;
    }
    auto at = std::find_if(needed.begin(), needed.end(),
                           [&](const auto& pair) { return pair.first == hierarchy; });
    if (at == needed.end()) at = needed.insert(at, {hierarchy, {}});
    at->second.emplace_back(controller);
  }
  for (auto& [hierarchy, controllers] : needed) {
    CgroupJoin join;
    join.version = hierarchy->version;
    join.dir = hierarchy->own_dir + "/athanor/" + name;
    const Status made = hierarchy->version == 2
                            ? MakeUnified(*hierarchy, name, controllers, &join.dir)
                            : CgroupDriver::Make(*hierarchy, join.dir, controllers);
    if (made.ok() && RefusesRealTime(join)) {
      for (const auto& controller : controllers) {
        lack(controller, "a process with a real-time policy cannot join the cgroup");
      }
      (void)CgroupDriver::Remove(join.dir);
      continue;
    }
    for (const auto& controller : controllers) {
      const Status set = made.ok() ? SetOne(join, controller, limits) : made;
      if (made.ok()) join.controllers.push_back(controller);
      if (!set.ok()) lack(controller, set.error().what);
    }
    if (made.ok()) cgroup.joins.push_back(std::move(join));
  }
  return cgroup;
}

AttemptCgroup AttemptCgroupOf(const SupervisorPlan& plan) {
  AttemptCgroup cgroup;
  cgroup.joins = plan.cgroups;
  return cgroup;
}

void SummarizeOff(AttemptCgroup& cgroup, const CgroupLimits& asked) {
  if (cgroup.off.empty()) return;
  auto& off = cgroup.off;
  const auto line = LimitsNotInCgroup(cgroup, asked);
  const bool none = cgroup.joins.empty();
  // The new lines say the same as these, and what holds instead.
  off.erase(std::remove_if(off.begin(), off.end(),
                           [&](const std::string& one) {
                             if (StartsWith(one, "CPU accounting:")) return none;
                             return (none || !line.empty()) && (StartsWith(one, "memory limit:") ||
                                                                StartsWith(one, "CPU limit:") ||
                                                                StartsWith(one, "process limit:"));
                           }),
            off.end());
  if (none) {
    off.insert(off.begin(), "no cgroup " + WhoHasNone() + ": " +
                                (line.empty() ? "processes not limited, " : "") +
                                "usage comes from /proc");
  }
  if (!line.empty()) off.insert(off.begin(), "limits: " + line);
}

std::string LimitsHere(const CgroupDriver& driver) {
  bool all = true;
  const auto text = [&](std::string_view controller, const char* held, const char* not_held) {
    const CgroupHierarchy* found = driver.Find(controller);
    const bool holds = found != nullptr && ::access(found->own_dir.c_str(), W_OK) == 0;
    all = all && holds;
    return std::string(holds ? held : not_held);
  };
  const std::vector<std::string> parts{
      text("memory", "memory held by a cgroup", "memory held by a watch"),
      text("cpu", "CPUs held by a cgroup", "CPUs not limited"),
      text("pids", "processes held by a cgroup", "processes not limited")};
  return all ? "" : Join(parts, "; ") + WhyNoCgroup();
}

Status KillAttemptCgroup(const AttemptCgroup& cgroup) {
  Status last = Ok();
  for (const auto& join : cgroup.joins) {
    if (Status killed = CgroupDriver::Kill(join.dir); !killed.ok()) last = std::move(killed);
  }
  return last;
}

Status RemoveAttemptCgroup(const AttemptCgroup& cgroup) {
  Status last = Ok();
  for (const auto& join : cgroup.joins) {
    if (Status removed = CgroupDriver::Remove(join.dir); !removed.ok()) last = std::move(removed);
    (void)::rmdir(DirName(join.dir).c_str());  // other attempts keep it
  }
  return last;
}

}  // namespace athanor
