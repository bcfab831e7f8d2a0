// The CgroupDriver knows where each controller is on this machine (v1, v2 or both at once) and does
// single operations on cgroup directories. It sets no limits itself and does not decide what a
// failure means: cgroup_policy does.
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
  // The directory of this process's cgroup. v2: the root of the mount instead, if that is writable
  // and has controllers that ours was not given.
  std::string own_dir;
  std::vector<std::string> controllers;  // v2: what the own directory may enable
  // This process is in the start lane below own_dir; its cgroups are not created there.
  bool in_start_lane = false;
};

inline constexpr std::string_view kStartLane = "athanor-start";  // see start_lane.h

class CgroupDriver {
 public:
  // Reads <root>/proc/self/{mountinfo,cgroup}. Never fails: with no cgroups the driver has no
  // hierarchy. A root other than "" is for tests, which use a tree of plain files; mount points are
  // then below it.
  static CgroupDriver Detect(const std::string& root = "");

  const std::vector<CgroupHierarchy>& hierarchies() const { return hierarchies_; }
  // Where a controller ("memory", "cpu", "cpuacct", "pids") can be used; null: nowhere. v1 wins if
  // both offer it, because the kernel binds it to one.
  const CgroupHierarchy* Find(std::string_view controller) const;
  const CgroupHierarchy* Unified() const;

  // mkdir -p. v2 folders get `controllers` enabled in every parent from `hierarchy.own_dir` down.
  // kConflict: a parent that would have to pass controllers on contains processes ("no internal
  // processes").
  static Status Make(const CgroupHierarchy& hierarchy, const std::string& dir,
                     const std::vector<std::string>& controllers);
  static Status Write(const std::string& dir, std::string_view file, std::string_view value);
  static Result<std::string> Read(const std::string& dir, std::string_view file);
  static Result<uint64_t> ReadNumber(const std::string& dir, std::string_view file);
  // One number of "key 12\nother 3\n".
  static Result<uint64_t> ReadKeyed(const std::string& dir, std::string_view file,
                                    std::string_view key);
  static Result<std::vector<int>> Processes(const std::string& dir);  // of this cgroup only
  // SIGKILL to all in it: cgroup.kill if it exists, otherwise rounds over cgroup.procs until it is
  // empty. kTimeout: some process would not die.
  static Status Kill(const std::string& dir);
  // rmdir, repeated for a while as long as dying processes hold it. If it is absent, that is fine.
  static Status Remove(const std::string& dir);

 private:
  std::vector<CgroupHierarchy> hierarchies_;
};

}  // namespace athanor
