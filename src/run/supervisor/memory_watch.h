// Enforces a memory limit where the kernel does not: adds up what the descendants of a process use
// and names the one to kill if that exceeds the limit. As with a cgroup, the largest one is killed
// and the others may continue.
//
// Counted are anonymous and shared memory and what of them is in swap, as a cgroup would count
// them after it has dropped all file cache; memory that processes share counts once. Not seen:
// files in /dev/shm that no process has mapped, and the kernel's own memory.
//
// How often it checks depends on how much is left: a process that fills memory at 1 GB/s is found
// soon after the limit, and a job far below it costs almost nothing. Counting shared memory only
// once takes the kernel long; it is done only if the cheap numbers cannot rule out that the limit
// is exceeded.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/supervisor/process_tree.h"

namespace athanor {

// What one process uses, in bytes, of /proc/PID/status or smaps_rollup.
struct ProcessMemory {
  uint64_t anonymous = 0;
  uint64_t shared = 0;
  uint64_t swap = 0;
  uint64_t sum() const { return anonymous + shared + swap; }
  bool operator==(const ProcessMemory&) const = default;
};

// All of each, however many share it. A line that is not understood counts nothing.
ProcessMemory ParseStatusMemory(std::string_view status);
// Of shared memory only this process's part. None: the kernel does not say.
std::optional<ProcessMemory> ParseRollupMemory(std::string_view rollup);

class MemoryWatch {
 public:
  struct Victim {
    int pid = 0;
    std::string name;
  };
  struct Seen {
    std::optional<Victim> kill;
    int64_t pause_ms = 0;  // until the next look
  };

  // Another `proc` is for tests.
  explicit MemoryWatch(uint64_t limit_bytes, std::string proc = "/proc");

  // Checks all descendants of `root`; not `root` itself.
  Seen Look(int root);

  uint64_t peak() const { return peak_; }  // of all looks

 private:
  struct Process {
    ProcessInfo info;
    uint64_t bytes = 0;
  };

  std::string PathOf(int pid, const char* file) const;
  uint64_t WholeOf(int pid) const;
  std::vector<Process> List(int root) const;
  std::vector<Process> ListOnce(int root, std::vector<Process> processes) const;
  void CountOnce(std::vector<Process>& processes) const;
  static uint64_t Sum(const std::vector<Process>& processes);
  uint64_t MostNow(const std::vector<Process>& processes) const;
  bool SameMemory(const ProcessInfo& child, const ProcessInfo& parent) const;

  const uint64_t limit_;
  const std::string proc_;
  uint64_t peak_ = 0;

  // As of the last careful count, from which follows how much it can be at most by now.
  struct Known {
    uint64_t bytes = 0;
    uint64_t faults = 0;
  };
  std::map<std::pair<int, uint64_t>, Known> known_;  // by pid and start
  uint64_t counted_ = 0;
  std::set<std::pair<int, uint64_t>> dying_;  // pid and start of who was killed: counts no more
};

// The time until the next look, from what is used now and how long this check took. A separate
// function, so that it can be tested over all values.
int64_t PauseOfWatch(uint64_t limit, uint64_t used, int64_t look_us);

}  // namespace athanor
