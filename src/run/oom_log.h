// Whom the kernel killed because a cgroup's memory was full. A cgroup counts such kills but does
// not say who it was; the kernel's log does, to those who may read it (root, mostly).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

struct OomKill {
  std::string cgroup;  // of the process: "/user.slice/athanor/01m7q..."
  std::string name;
  int64_t pid = 0;     // as the machine counts, not the script's namespace
};

// One record of the log: "oom-kill:constraint=CONSTRAINT_MEMCG,...,task=python3,pid=71,uid=0".
std::optional<OomKill> ParseOomKill(std::string_view record);

// The newest one in a cgroup whose last name is `cgroup_name`, among what the log still holds.
// None: there is none, or the log may not be read. Does not wait.
std::optional<OomKill> FindOomKill(std::string_view cgroup_name,
                                   const std::string& log = "/dev/kmsg");

}  // namespace athanor
