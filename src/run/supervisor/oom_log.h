// Which process the kernel killed because a cgroup's memory was full. A cgroup counts such kills
// but does not name the process; the kernel's log does, for users who may read it (mostly root).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

struct OomKill {
  std::string cgroup;  // of the process: "/user.slice/athanor/01m7q..."
  std::string name;
  int64_t pid = 0;  // the machine's pid, not that of the script's namespace
};

// One record of the log: "oom-kill:constraint=CONSTRAINT_MEMCG,...,task=python3,pid=71,uid=0".
std::optional<OomKill> ParseOomKill(std::string_view record);

// The newest one in a cgroup whose last name is `cgroup_name`, among what is still in the log.
// None: there is none, or the log may not be read. Does not wait.
std::optional<OomKill> FindOomKill(std::string_view cgroup_name,
                                   const std::string& log = "/dev/kmsg");

}  // namespace athanor
