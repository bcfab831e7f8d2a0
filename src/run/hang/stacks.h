// Where the processes of an attempt are: Python's stacks, written by the faulthandler that
// python/site/sitecustomize.py registered, and for other processes what the kernel says about them.
// Read-only: no process is stopped, traced or ended.
//
// The signal goes only to a process that both catches it and has the stacks file open, which is how
// our handler is recognised. By default the signal is ignored, so a process that becomes another
// program meanwhile is not harmed.
//
// Threads: TakeStacks blocks for up to its time limit; not for the control thread.
// One at a time for a stacks file.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/ids.h"
#include "run/supervisor/process_tree.h"

namespace athanor {

// The name python/site/sitecustomize.py looks up; use one file per rank.
inline constexpr char kStacksVariable[] = "ATHANOR_STACKS";

struct RankProcesses {
  Rank rank;
  std::vector<int> pids;    // the main process first, then its children; as seen by us
  std::string stacks_file;  // as seen by us; need not exist
};
// `main_pid` and its living descendants, nearest first. Empty pids if it is gone.
RankProcesses ProcessesOfRank(const std::vector<ProcessInfo>& all, Rank rank, int main_pid,
                              std::string stacks_file);

struct ProcessStack {
  int pid = 0;
  std::string comm;     // its name, printable
  bool python = false;  // `text` is what faulthandler wrote
  std::string text;     // otherwise lines such as "state: S (sleeping)" and "in system call: futex"
};

struct RankStacks {
  Rank rank;
  std::vector<ProcessStack> processes;  // in the order asked for; ended ones left out

  // For people, at most `limit` bytes: a heading for each process, then its text.
  std::string Text(size_t limit = 64u << 10) const;
};

// Asks one process after the other, main processes of all ranks first, until the time is up; those
// not reached get the kernel's lines, with a note. Never fails.
std::vector<RankStacks> TakeStacks(const std::vector<RankProcesses>& ranks,
                                   std::chrono::milliseconds timeout,
                                   const std::string& proc = "/proc");

// The ranks that are at another place than most.
struct OddRanks {
  std::vector<Rank> ranks;      // at least one, rising
  std::vector<std::string> at;  // where each of them is: "train.py:40 in load"
  std::string others_at;        // where the majority is
  size_t others = 0;            // how many those are

  // "rank 3 is at train.py:40 in load; the other 7 are at train.py:52 in step"
  std::string Text() const;
};
// Compares the innermost frame in the user's own code (else the innermost one) of each rank's first
// Python process; ranks without one are compared as such. None if all agree, or if no place has
// more than half of the ranks.
std::optional<OddRanks> OddRank(const std::vector<RankStacks>& stacks);

// The signals that /proc/PID/status shows under `field` ("SigCgt", "ShdPnd"), as bits from signal 1
// up; 0 if it does not.
uint64_t SignalSet(std::string_view status, std::string_view field);

}  // namespace athanor
