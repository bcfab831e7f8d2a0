// A SupervisorPlan is the complete input of the supervisor: one file in the attempt's directory,
// written by the agent, read once. It says what to run, what the script may see and where to write
// the results; it says nothing about retries or data.
//
// Every path is absolute and as seen outside the namespaces, except `cwd` and argv of a rank, which
// are resolved as the script sees them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

struct RankPlan {
  std::vector<std::string> argv;  // argv[0] without '/' is looked up in env's PATH
  std::vector<std::string> env;   // "NAME=value"; the rank gets exactly these
  std::string cwd;
  std::string stdout_path;  // appended to, made 0600; the same path for both merges the streams
  std::string stderr_path;

  bool operator==(const RankPlan&) const = default;
};

struct MountPlan {
  std::string source;  // file or directory
  std::string target;  // created inside the namespace if missing; the host's tree is not changed
  bool read_only = false;
  // If it cannot be made: true ends the attempt with a set-up error, false lists it as off and
  // continues.
  bool required = true;
  // Not empty: an overlay. The script sees this folder at `target` and may write to it; what it
  // writes goes to `source` (with `source`.work next to it).
  std::string lower;

  bool operator==(const MountPlan&) const = default;
};

struct CgroupJoin {
  std::string dir;
  int version = 2;                       // 1 or 2
  std::vector<std::string> controllers;  // what this directory limits or counts: "memory", "cpu"...

  bool operator==(const CgroupJoin&) const = default;
};

struct RlimitPlan {
  std::string name;  // "core", "nofile", "nproc", "memlock", "stack", "fsize", "as", "cpu", "data"
  uint64_t soft = 0;
  uint64_t hard = 0;

  bool operator==(const RlimitPlan&) const = default;
};

struct SupervisorPlan {
  static constexpr int64_t kNoId = -1;

  std::vector<RankPlan> ranks;
  std::string hostname;             // empty: the host's
  std::vector<MountPlan> mounts;    // in order, after `hide`
  std::vector<std::string> hide;    // an empty read-only tmpfs is mounted over each
  std::vector<CgroupJoin> cgroups;  // joined by the ranks; the supervisor stays outside
  int64_t memory_watch_bytes = 0;   // a limit that no cgroup enforces: see memory_watch.h; 0: none
  int64_t uid = kNoId;
  int64_t gid = kNoId;
  bool no_new_privs = true;
  // Removes from a rank that runs as root what would let it undo its own namespaces or look into
  // the supervisor (CAP_SYS_ADMIN, tracing, devices, raw I/O, reboot, clock...).
  bool drop_capabilities = true;
  std::vector<RlimitPlan> rlimits = {{"core", 0, 0}};
  int64_t log_cap_bytes = int64_t{1} << 30;  // per stream; 0 keeps nothing
  int64_t stop_grace_ms = 120'000;           // SIGTERM to SIGKILL; 0: only SIGUSR2 kills
  int64_t peer_grace_ms = 30'000;            // the same for the ranks left when one failed
  int64_t linger_ms = 2'000;                 // what outlives the last rank is killed after this

  std::string status_path;   // SupervisorStatus: who I am, before anything else
  std::string started_path;  // StartedRecord: every rank was started or refused
  std::string exit_path;     // ExitRecord: everything has ended

  bool operator==(const SupervisorPlan&) const = default;
};

// kInvalid: a broken rule (no rank, relative path, NUL, bad hostname...); `what` names the field.
Status CheckPlan(const SupervisorPlan& plan);
Result<std::string> SerializePlan(const SupervisorPlan& plan);  // checks first
// kCorrupt: not a plan of this version, unknown or repeated key. kInvalid: as CheckPlan.
Result<SupervisorPlan> ParsePlan(std::string_view bytes);
// The kernel's number (RLIMIT_CORE...) for a name, or -1.
int RlimitNumber(std::string_view name);

}  // namespace athanor
