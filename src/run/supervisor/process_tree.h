// The processes of this machine according to /proc, and what follows from the tree: descendants,
// and which process of a rank is the program that a stop is meant for. Shared by the agent and the
// supervisor.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

struct ProcessInfo {
  int pid = 0;
  int ppid = 0;
  char state = '?';  // 'Z' is a zombie
  // It has begun to die: its files may be closed already, although it is not a zombie yet.
  bool exiting = false;
  uint64_t cpu_ticks = 0;
  uint64_t start_ticks = 0;
  uint64_t rss_pages = 0;
  uint64_t minor_faults = 0;  // its own
  std::string comm;
};

// One line of /proc/PID/stat; false when it is not one. A comm may contain anything, including
// spaces and parentheses.
bool ParseProcStat(std::string_view line, ProcessInfo* info);
bool ReadProcess(const std::string& proc, int pid, ProcessInfo* info);
std::vector<ProcessInfo> ListProcesses(const std::string& proc = "/proc");

// Children, their children and so on; without `root` itself.
std::vector<ProcessInfo> DescendantsOf(const std::vector<ProcessInfo>& all, int root);

// Whether `parent` has children and none of them is ending or has ended. What a process had open
// when it died looks closed; check this after looking at the files to know that no process died
// before.
bool ChildrenLive(int parent, const std::string& proc = "/proc");

// What is not in stat: the program's file name, and whether it catches SIGTERM.
struct ProcessTraits {
  std::string exe;  // base name; empty when not known
  bool catches_term = false;
};
ProcessTraits ReadTraits(const std::string& proc, int pid);

// A process of a rank that a stop is meant for.
struct StopTarget {
  enum class Kind {
    kProgram,  // what the job runs
    kSaver,    // a program that copies, packs or sends files, and then ends by itself
    kFilter,   // a filter without a program before it
    kIdle,     // a shell or wrapper with nothing below it
    kTrap,     // a shell that catches SIGTERM, above what it runs
  };
  int pid = 0;
  uint64_t start_ticks = 0;
  Kind kind = Kind::kProgram;
  bool operator==(const StopTarget&) const = default;
};

// Where SIGTERM for the rank whose first process is `rank_pid` should go: down through shells and
// other wrappers that only wait (sh, bash, timeout, ...) to the programs they run, never below
// those, so that the program that started the workers of a data loader handles them. In a pipeline,
// the filters (tee, grep...) are skipped: they end when their input does. A shell that traps
// SIGTERM gets it too, after its program. `spare`: shells that trap it and are skipped with
// everything below them; without it the result is never empty.
std::vector<StopTarget> StopTargets(const std::vector<ProcessInfo>& all, int rank_pid,
                                    const std::function<ProcessTraits(int)>& traits_of,
                                    const std::function<bool(const ProcessInfo&)>& spare = {});

}  // namespace athanor
