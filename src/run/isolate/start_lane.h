// The start lane. Where the kernel shares processor time by session (autogroup), every session that
// the start of a script makes (agent, supervisor, script) waits for its first turn behind
// everything that keeps the machine busy, even at low priority. So the server moves to a cgroup
// with a larger share, and the processes that it starts begin there. They return to the normal
// cgroup when the script runs, and at once if its preparation may take long: installing and copying
// have no priority. The script itself runs in the cgroup of its attempt.
//
// Does nothing if it does not apply: no autogroups, another cgroup than the root (autogroups have
// no effect there), or no permission to make cgroups.
#pragma once

#include <string>
#include <vector>

namespace athanor {

// For the only thread of a process, and so without the milliseconds that moving other processes
// costs. `root` is for tests: see CgroupDriver::Detect.
void EnterStartLane(const std::string& root = "");
void LeaveStartLane(const std::string& root = "");
// Leaves it and removes it, unless others are in it.
void CloseStartLane(const std::string& root = "");

// Whole processes, if this one is in it.
void MoveFromStartLane(const std::vector<int>& pids, const std::string& root = "");

}  // namespace athanor
