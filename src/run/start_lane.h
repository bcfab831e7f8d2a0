// The start lane. Where the kernel shares processor time by session (autogroup), every session that
// the start of a script makes (agent, supervisor, script) waits for its first turn behind whatever
// keeps the machine busy, of however low a priority that is. So the server moves to a cgroup that
// has a larger share, and whom it starts begins there. They go back to where everybody is once the
// script runs, and at once if its preparation may take long: installing and copying are work like
// any other. The script itself runs in the cgroup of its attempt.
//
// Nothing happens where it does not apply: no autogroups, another cgroup than the root (there they
// have no effect), or no right to make cgroups.
#pragma once

#include <string>
#include <vector>

namespace athanor {

// For the only thread of a process, and so without the wait of milliseconds that a move of other
// processes costs. `root` is for tests: see CgroupDriver::Detect.
void EnterStartLane(const std::string& root = "");
void LeaveStartLane(const std::string& root = "");
// Leaves it and takes it away, unless others are there.
void CloseStartLane(const std::string& root = "");

// Whole processes, if this one is there.
void MoveFromStartLane(const std::vector<int>& pids, const std::string& root = "");

}  // namespace athanor
