#include "run/supervisor/memory_watch.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace athanor {
namespace {

// Faster than one process can fill memory: the next check comes before it could reach the limit.
constexpr uint64_t kFastestPerMs = 4'000'000;
// How fast it may grow for the limit to be enforced closely although a check is expensive.
constexpr uint64_t kExpectedPerMs = 1'000'000;
constexpr int64_t kShortestMs = 2;
constexpr int64_t kLongestMs = 250;
constexpr int64_t kLongestAfterDearMs = 2'000;
// A check may take at most one part in this many of the time.
constexpr int64_t kShare = 20;
constexpr int kMostTries = 4;

int64_t MonotonicUs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

std::string ReadSmall(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  ssize_t n = 0;
  while (text.size() < 64 << 10 && (n = ::read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(fd);
  return text;
}

// Of a line "Name:   12 kB". None: it is another line, or no number.
std::optional<uint64_t> Kilobytes(std::string_view line, std::string_view name) {
  if (line.substr(0, name.size()) != name) return std::nullopt;
  line.remove_prefix(name.size());
  if (line.empty() || line[0] != ':') return std::nullopt;
  line.remove_prefix(1);
  while (!line.empty() && (line[0] == ' ' || line[0] == '\t')) line.remove_prefix(1);
  uint64_t number = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), number);
  // More than any machine has is invalid, and sums of less do not overflow.
  if (parsed.ec != std::errc() || number > uint64_t{1} << 43) return std::nullopt;
  return number * 1024;
}

struct Row {
  std::string_view name;
  uint64_t ProcessMemory::*member;
};

// How many of the rows were there.
template <size_t N>
size_t ReadRows(std::string_view text, const Row (&rows)[N], ProcessMemory* memory) {
  size_t found = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    for (const Row& row : rows) {
      if (const auto bytes = Kilobytes(line, row.name)) {
        memory->*row.member = *bytes;
        ++found;
      }
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return found;
}

constexpr Row kStatusRows[] = {{"RssAnon", &ProcessMemory::anonymous},
                               {"RssShmem", &ProcessMemory::shared},
                               {"VmSwap", &ProcessMemory::swap}};
constexpr Row kRollupRows[] = {{"Pss_Anon", &ProcessMemory::anonymous},
                               {"Pss_Shmem", &ProcessMemory::shared},
                               {"SwapPss", &ProcessMemory::swap}};

}  // namespace

ProcessMemory ParseStatusMemory(std::string_view status) {
  ProcessMemory memory;
  (void)ReadRows(status, kStatusRows, &memory);
  return memory;
}

std::optional<ProcessMemory> ParseRollupMemory(std::string_view rollup) {
  ProcessMemory memory;
  if (ReadRows(rollup, kRollupRows, &memory) < 2) return std::nullopt;
  return memory;
}

int64_t PauseOfWatch(uint64_t limit, uint64_t used, int64_t look_us) {
  const uint64_t room = used < limit ? limit - used : 0;
  const auto by_room =
      static_cast<int64_t>(std::clamp<uint64_t>(room / kFastestPerMs, kShortestMs, kLongestMs));
  // Expensive checks are made less often, but not so rarely that an eighth of the limit is
  // exceeded.
  const int64_t by_cost = std::max<int64_t>(look_us, 0) / 1000 * kShare;
  const auto most =
      static_cast<int64_t>(std::min<uint64_t>(limit / 8 / kExpectedPerMs, kLongestAfterDearMs));
  return std::max(by_room, std::min(by_cost, most));
}

MemoryWatch::MemoryWatch(uint64_t limit_bytes, std::string proc)
    : limit_(limit_bytes), proc_(std::move(proc)) {}

// Between vfork and exec a child runs in its parent's memory.
bool MemoryWatch::SameMemory(const ProcessInfo& child, const ProcessInfo& parent) const {
  const long order =
      proc_ == "/proc" ? ::syscall(SYS_kcmp, child.pid, parent.pid, KCMP_VM, 0, 0) : -1;
  if (order >= 0) return order == 0;
  // The kernel does not say. Two that are equal to the last page are the same, or have just forked
  // and share everything.
  const auto status = [this](int pid) {
    return ParseStatusMemory(ReadSmall(PathOf(pid, "status")));
  };
  return child.rss_pages == parent.rss_pages && status(child.pid) == status(parent.pid);
}

// What is shared, to each its part.
void MemoryWatch::CountOnce(std::vector<Process>& processes) const {
  for (auto& process : processes) {
    const auto parent = std::find_if(processes.begin(), processes.end(), [&](const Process& other) {
      return other.info.pid == process.info.ppid;
    });
    if (parent != processes.end() && SameMemory(process.info, parent->info)) {
      process.bytes = 0;
      continue;
    }
    // It costs time per page, and delays a process that allocates: only here.
    const auto part = ParseRollupMemory(ReadSmall(PathOf(process.info.pid, "smaps_rollup")));
    // If missing: it has ended meanwhile, or we may not look.
    process.bytes = part ? part->sum() : WholeOf(process.info.pid);
  }
}

std::string MemoryWatch::PathOf(int pid, const char* file) const {
  return proc_ + "/" + std::to_string(pid) + "/" + file;
}

uint64_t MemoryWatch::WholeOf(int pid) const {
  return ParseStatusMemory(ReadSmall(PathOf(pid, "status"))).sum();
}

// Each with all that it shares.
std::vector<MemoryWatch::Process> MemoryWatch::List(int root) const {
  std::vector<Process> processes;
  for (auto& info : DescendantsOf(ListProcesses(proc_), root)) {
    if (info.state == 'Z' || dying_.contains({info.pid, info.start_ticks})) continue;
    const uint64_t whole = WholeOf(info.pid);
    processes.push_back({std::move(info), whole});
  }
  return processes;
}

// One part was read after the other. A process that forks or ends in between changes what all
// others have: the sum may then be of a state that never existed, so it is taken again, and the
// lowest counts.
std::vector<MemoryWatch::Process> MemoryWatch::ListOnce(int root,
                                                        std::vector<Process> processes) const {
  std::vector<Process> least;
  for (int i = 0; i < kMostTries; ++i) {
    CountOnce(processes);
    if (i == 0 || Sum(processes) < Sum(least)) least = processes;
    if (Sum(least) <= limit_) break;
    auto again = List(root);
    const bool same =
        std::equal(processes.begin(), processes.end(), again.begin(), again.end(),
                   [](const Process& a, const Process& b) {
                     return a.info.pid == b.info.pid && a.info.start_ticks == b.info.start_ticks;
                   });
    if (same) break;
    processes = std::move(again);
  }
  return least;
}

// There can be more than was counted only by pages that were added since, which their processes
// show, or copied, each by a fault. For processes that started since, everything may be new.
uint64_t MemoryWatch::MostNow(const std::vector<Process>& processes) const {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t most = counted_;
  for (const auto& process : processes) {
    const auto known = known_.find({process.info.pid, process.info.start_ticks});
    if (known == known_.end()) {
      most += process.bytes;
      continue;
    }
    if (process.bytes > known->second.bytes) most += process.bytes - known->second.bytes;
    if (process.info.minor_faults > known->second.faults) {
      most += (process.info.minor_faults - known->second.faults) * page;
    }
  }
  return most;
}

MemoryWatch::Seen MemoryWatch::Look(int root) {
  const int64_t began = MonotonicUs();
  auto processes = List(root);
  // All processes together have at least what one of them has: the peak is never below it, even
  // where nothing is counted.
  for (const auto& process : processes) peak_ = std::max(peak_, process.bytes);
  uint64_t used = Sum(processes);
  if (used <= limit_) {
    peak_ = std::max(peak_, used);
    return {std::nullopt, PauseOfWatch(limit_, used, MonotonicUs() - began)};
  }
  used = MostNow(processes);
  if (!known_.empty() && used <= limit_) {
    return {std::nullopt, PauseOfWatch(limit_, used, MonotonicUs() - began)};
  }
  known_.clear();
  for (const auto& process : processes) {
    known_[{process.info.pid, process.info.start_ticks}] = {process.bytes,
                                                            process.info.minor_faults};
  }
  processes = ListOnce(root, std::move(processes));
  counted_ = used = Sum(processes);
  peak_ = std::max(peak_, used);
  Seen seen;
  if (used > limit_) {
    const auto largest =
        std::max_element(processes.begin(), processes.end(),
                         [](const Process& a, const Process& b) { return a.bytes < b.bytes; });
    seen.kill = Victim{largest->info.pid, largest->info.comm};
    dying_.insert({largest->info.pid, largest->info.start_ticks});
    known_.clear();
  }
  seen.pause_ms = PauseOfWatch(limit_, used, MonotonicUs() - began);
  return seen;
}

uint64_t MemoryWatch::Sum(const std::vector<Process>& processes) {
  uint64_t sum = 0;
  for (const auto& process : processes) sum += process.bytes;
  return sum;
}

}  // namespace athanor
