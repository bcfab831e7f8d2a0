// The CgroupDriver knows where each controller lives on this machine (v1, v2
// or both at once) and does single operations on cgroup directories. It sets
// no limits of its own and has no opinion on failure: cgroup_policy does.
//
// Threads: const and stateless after Detect; safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

struct CgroupHierarchy {
  int version = 2;
  std::string mount_point;
  // The directory of this process's cgroup. v2: the mount's root instead, where that one may
  // be written and gives controllers that ours was not given.
  std::string own_dir;
  std::vector<std::string> controllers;  // v2: what the own directory may enable
  // This process is in the start lane below own_dir, which is where its cgroups are not made.
  bool in_start_lane = false;
};

inline constexpr std::string_view kStartLane = "athanor-start";  // see start_lane.h

class CgroupDriver {
 public:
  // Reads <root>/proc/self/{mountinfo,cgroup}. Never fails: with no cgroups
  // the driver has no hierarchy. Another root than "" is for tests, which lay
  // out a tree of plain files; mount points are then taken below it.
  static CgroupDriver Detect(const std::string& root = "");

  const std::vector<CgroupHierarchy>& hierarchies() const { return hierarchies_; }
  // Where a controller ("memory", "cpu", "cpuacct", "pids") can be used; null:
  // nowhere. v1 wins when both offer it, because the kernel binds it to one.
  const CgroupHierarchy* Find(std::string_view controller) const;
  const CgroupHierarchy* Unified() const;

  // mkdir -p. v2 folders get `controllers` enabled in every parent from
  // `hierarchy.own_dir` down. kConflict: processes sit in a parent that would
  // have to give controllers on ("no internal processes").
  static Status Make(const CgroupHierarchy& hierarchy, const std::string& dir,
                     const std::vector<std::string>& controllers);
  static Status Write(const std::string& dir, std::string_view file, std::string_view value);
  static Result<std::string> Read(const std::string& dir, std::string_view file);
  static Result<uint64_t> ReadNumber(const std::string& dir, std::string_view file);
  // One number of "key 12\nother 3\n".
  static Result<uint64_t> ReadKeyed(const std::string& dir, std::string_view file,
                                    std::string_view key);
  static Result<std::vector<int>> Processes(const std::string& dir);  // of this cgroup only
  // SIGKILL to all in it: cgroup.kill where there is one, else rounds over
  // cgroup.procs until it is empty. kTimeout: some process would not die.
  static Status Kill(const std::string& dir);
  // rmdir, again for a while as long as dying processes hold it. An absent one is fine.
  static Status Remove(const std::string& dir);

 private:
  std::vector<CgroupHierarchy> hierarchies_;
};

}  // namespace athanor
