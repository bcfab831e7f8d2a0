#include "run/isolate/start_lane.h"

#include <unistd.h>

#include <optional>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/isolate/cgroup_driver.h"

namespace athanor {
namespace {

constexpr std::string_view kSharesV1 = "10240";  // ten times what anybody else has
constexpr std::string_view kWeightV2 = "1000";

std::string LaneOf(const CgroupHierarchy& hierarchy) {
  return JoinPath(hierarchy.own_dir, kStartLane);
}

bool SharesBySession(const std::string& root) {
  const auto text = ReadFile(root + "/proc/sys/kernel/sched_autogroup_enabled");
  return text && Trim(*text) == "1";
}

// A thread that is alone in its process.
void MoveThis(const CgroupHierarchy& hierarchy, const std::string& dir) {
  (void)CgroupDriver::Write(dir, hierarchy.version == 1 ? "tasks" : "cgroup.procs", "0").ok();
}

// Where the lane is, if this process is in it.
std::optional<CgroupHierarchy> InLane(const std::string& root) {
  const auto driver = CgroupDriver::Detect(root);
  const auto* cpu = driver.Find("cpu");
  return cpu != nullptr && cpu->in_start_lane ? std::optional(*cpu) : std::nullopt;
}

}  // namespace

void EnterStartLane(const std::string& root) {
  if (!SharesBySession(root)) return;
  const auto driver = CgroupDriver::Detect(root);
  const auto* cpu = driver.Find("cpu");
  if (cpu == nullptr || cpu->in_start_lane || cpu->own_dir != cpu->mount_point) return;
  const std::string lane = LaneOf(*cpu);
  if (!CgroupDriver::Make(*cpu, lane, {"cpu"}).ok()) return;
  const bool v1 = cpu->version == 1;
  if (!CgroupDriver::Write(lane, v1 ? "cpu.shares" : "cpu.weight", v1 ? kSharesV1 : kWeightV2)
           .ok()) {
    return;
  }
  MoveThis(*cpu, lane);
}

void LeaveStartLane(const std::string& root) {
  if (const auto cpu = InLane(root)) MoveThis(*cpu, cpu->own_dir);
}

void CloseStartLane(const std::string& root) {
  const auto cpu = InLane(root);
  if (!cpu) return;
  MoveThis(*cpu, cpu->own_dir);
  (void)::rmdir(LaneOf(*cpu).c_str());
}

void MoveFromStartLane(const std::vector<int>& pids, const std::string& root) {
  const auto cpu = InLane(root);
  if (!cpu) return;
  for (const int pid : pids) {
    (void)CgroupDriver::Write(cpu->own_dir, "cgroup.procs", std::to_string(pid)).ok();
  }
}

}  // namespace athanor
