#include "run/supervisor/cgroup_counters.h"

#include <algorithm>
#include <charconv>

#include "run/supervisor/os.h"

namespace athanor::supervisor {
namespace {

int64_t NumberAt(std::string_view text) {
  int64_t number = -1;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return -1;
  return number;
}

int64_t ReadNumber(const CgroupDir& cgroup, const char* file) {
  return NumberAt(ReadWholeAt(cgroup.dir.get(), file));
}

// "key 12\nother 3\n"
int64_t ReadKeyed(const CgroupDir& cgroup, const char* file, std::string_view key) {
  const std::string text = ReadWholeAt(cgroup.dir.get(), file);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.size() > key.size() && line[key.size()] == ' ' && line.substr(0, key.size()) == key) {
      return NumberAt(line.substr(key.size() + 1));
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return -1;
}

}  // namespace

void AddCounters(const CgroupDir& cgroup, CgroupEnd* end) {
  const auto has = [&](const char* name) {
    return std::find(cgroup.controllers.begin(), cgroup.controllers.end(), name) !=
           cgroup.controllers.end();
  };
  if (cgroup.version == 1) {
    if (has("memory")) {
      end->oom_kills = ReadKeyed(cgroup, "memory.oom_control", "oom_kill");
      end->limit_hits = ReadNumber(cgroup, "memory.failcnt");
      end->memory_peak = ReadNumber(cgroup, "memory.max_usage_in_bytes");
      end->memory_limit = ReadNumber(cgroup, "memory.limit_in_bytes");
      // The kernel's way of writing "none": a page below 2^63.
      if (end->memory_limit > INT64_MAX - (1 << 20)) end->memory_limit = -1;
    }
    if (has("cpuacct")) end->cpu_ns = ReadNumber(cgroup, "cpuacct.usage");
    return;
  }
  if (has("memory")) {
    end->oom_kills = ReadKeyed(cgroup, "memory.events", "oom_kill");
    end->limit_hits = ReadKeyed(cgroup, "memory.events", "max");
    end->memory_peak = ReadNumber(cgroup, "memory.peak");
    end->memory_limit = ReadNumber(cgroup, "memory.max");  // "max" is not a number: -1
  }
  const int64_t usec = ReadKeyed(cgroup, "cpu.stat", "usage_usec");
  if (has("cpu") && usec >= 0) end->cpu_ns = usec * 1000;
}

}  // namespace athanor::supervisor
