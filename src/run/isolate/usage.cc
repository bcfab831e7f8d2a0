#include "run/isolate/usage.h"

#include <unistd.h>

#include "run/supervisor/process_tree.h"

namespace athanor {
namespace {

bool MemoryOf(const CgroupJoin& join, UsageSample* sample) {
  const bool v1 = join.version == 1;
  const auto current =
      CgroupDriver::ReadNumber(join.dir, v1 ? "memory.usage_in_bytes" : "memory.current");
  if (!current) return false;
  const uint64_t cache =
      CgroupDriver::ReadKeyed(join.dir, "memory.stat", v1 ? "total_inactive_file" : "inactive_file")
          .value_or(0);
  sample->memory_bytes = *current > cache ? *current - cache : 0;
  sample->memory_peak =
      CgroupDriver::ReadNumber(join.dir, v1 ? "memory.max_usage_in_bytes" : "memory.peak")
          .value_or(0);
  const uint64_t limit =
      CgroupDriver::ReadNumber(join.dir, v1 ? "memory.limit_in_bytes" : "memory.max").value_or(0);
  // v1 writes "no limit" as the largest multiple of a page.
  sample->memory_limit = limit > uint64_t{INT64_MAX} - (1u << 20) ? 0 : limit;
  return true;
}

bool CpuOf(const CgroupJoin& join, UsageSample* sample) {
  if (join.version == 1) {
    const auto ns = CgroupDriver::ReadNumber(join.dir, "cpuacct.usage");
    if (ns) sample->cpu_ns = *ns;
    return ns.has_value();
  }
  const auto us = CgroupDriver::ReadKeyed(join.dir, "cpu.stat", "usage_usec");
  if (us) sample->cpu_ns = *us * 1000;
  return us.has_value();
}

}  // namespace

Result<UsageSample> SampleUsage(const AttemptCgroup& cgroup, int64_t supervisor_pid,
                                const std::string& proc) {
  UsageSample sample;
  const CgroupJoin* memory = cgroup.Find("memory");
  const CgroupJoin* cpu = cgroup.Find("cpuacct");
  const CgroupJoin* pids = cgroup.Find("pids");
  const bool have_memory = memory != nullptr && MemoryOf(*memory, &sample);
  const bool have_cpu = cpu != nullptr && CpuOf(*cpu, &sample);
  const auto count = pids != nullptr
                         ? CgroupDriver::ReadNumber(pids->dir, "pids.current")
                         : Result<uint64_t>(Fail(ErrorCode::kNotFound, "no pids cgroup"));
  if (count) sample.processes = static_cast<int64_t>(*count);
  if (have_memory && have_cpu && count) return sample;

  ProcessInfo supervisor;
  if (!ReadProcess(proc, static_cast<int>(supervisor_pid), &supervisor)) {
    if (have_memory || have_cpu) return sample;
    return Fail(ErrorCode::kNotFound, "the attempt has ended");
  }
  const auto ticks = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  UsageSample walked;
  for (const auto& process : DescendantsOf(ListProcesses(proc), static_cast<int>(supervisor_pid))) {
    walked.cpu_ns += process.cpu_ticks * (1'000'000'000 / ticks);
    walked.memory_bytes += process.rss_pages * page;
    ++walked.processes;
  }
  if (!have_memory) sample.memory_bytes = walked.memory_bytes;
  if (!have_cpu) sample.cpu_ns = walked.cpu_ns;
  if (!count) sample.processes = walked.processes;
  return sample;
}

}  // namespace athanor
