#include "run/hang/stacks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <thread>
#include <utility>

#include "base/exec/process.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/diagnose/traceback.h"

namespace athanor {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kSignal = SIGURG;  // as in python/site/sitecustomize.py
constexpr milliseconds kLook{5};
constexpr milliseconds kSettled{60};  // without growth: faulthandler writes without pauses
constexpr milliseconds kMostEach{3'000};
constexpr size_t kMostText = 1u << 20;  // of one process

std::string ReadProc(const std::string& proc, int pid, const char* file) {
  const auto text = ReadFile(fmt::format("{}/{}/{}", proc, pid, file), 64u << 10);
  return text ? *text : std::string();
}

// "State:\tS (sleeping)" of a status file.
std::string_view FieldOf(std::string_view status, std::string_view field) {
  while (!status.empty()) {
    const size_t end = status.find('\n');
    const std::string_view line = status.substr(0, end);
    if (StartsWith(line, field) && line.substr(field.size(), 1) == ":") {
      return Trim(line.substr(field.size() + 1));
    }
    if (end == std::string_view::npos) break;
    status.remove_prefix(end + 1);
  }
  return {};
}

std::string_view NameOfSyscall(long number) {
  constexpr std::pair<long, std::string_view> kNames[] = {
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_futex, "futex"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendto, "sendto"},
      {SYS_accept4, "accept4"},
      {SYS_connect, "connect"},
      {SYS_openat, "openat"},
      {SYS_fsync, "fsync"},
      {SYS_flock, "flock"},
      {SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_epoll_wait
      {SYS_epoll_wait, "epoll_wait"},
#endif
#ifdef SYS_poll
      {SYS_poll, "poll"},
#endif
#ifdef SYS_select
      {SYS_select, "select"},
#endif
  };
  for (const auto& [value, name] : kNames) {
    if (value == number) return name;
  }
  return {};
}

// What the kernel says; lines that it refuses (not ours, not root) are left out.
std::string KernelLines(const std::string& proc, int pid, std::string_view status) {
  std::string text = fmt::format("state: {}\n", Printable(FieldOf(status, "State")));
  if (const auto threads = FieldOf(status, "Threads"); !threads.empty()) {
    text += fmt::format("threads: {}\n", Printable(threads));
  }
  const std::string wchan(Trim(ReadProc(proc, pid, "wchan")));
  if (!wchan.empty() && wchan != "0") text += "waits in: " + Printable(wchan) + "\n";
  const std::string syscall(Trim(ReadProc(proc, pid, "syscall")));
  long number = -1;
  const auto parsed = std::from_chars(syscall.data(), syscall.data() + syscall.size(), number);
  if (parsed.ec == std::errc() && number >= 0) {
    const auto name = NameOfSyscall(number);
    text += name.empty() ? fmt::format("in system call: number {}\n", number)
                         : fmt::format("in system call: {}\n", name);
  }
  for (const std::string& line : PlainLines(ReadProc(proc, pid, "stack"), 64)) {
    text += "  " + Printable(Trim(line)) + "\n";
  }
  return text;
}

bool HasOpen(const std::string& proc, int pid, const struct stat& file) {
  const std::string dir = fmt::format("{}/{}/fd", proc, pid);
  const auto names = ListDir(dir);
  if (!names) return false;
  return std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    struct statx open_file {};
    // Through the link, so that it does not matter under which name or in which mount namespace the
    // process opened it. Does not ask a remote file system: that may be what hangs.
    return ::statx(AT_FDCWD, JoinPath(dir, name).c_str(), AT_STATX_DONT_SYNC, STATX_INO,
                   &open_file) == 0 &&
           open_file.stx_ino == file.st_ino &&
           makedev(open_file.stx_dev_major, open_file.stx_dev_minor) == file.st_dev;
  });
}

// The stacks file of one rank while stacks are taken.
class StacksFile {
 public:
  explicit StacksFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    if (fd_ && (::fstat(fd_.get(), &stat_) != 0 || !S_ISREG(stat_.st_mode))) fd_.reset();
  }

  explicit operator bool() const { return static_cast<bool>(fd_); }
  const struct stat& identity() const { return stat_; }

  int64_t Size() const {
    struct stat now {};
    return ::fstat(fd_.get(), &now) == 0 ? now.st_size : 0;
  }

  std::string From(int64_t offset) const {
    std::string text(
        std::min<size_t>(kMostText, static_cast<size_t>(std::max<int64_t>(0, Size() - offset))),
        '\0');
    const ssize_t n = ::pread(fd_.get(), text.data(), text.size(), offset);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

  // A process that may still answer: whatever is written from now on may come from it.
  int unanswered = 0;

 private:
  UniqueFd fd_;
  struct stat stat_ {};
};

class Taker {
 public:
  Taker(milliseconds timeout, const std::string& proc)
      : proc_(proc), deadline_(Steady::now() + timeout) {}

  // Nothing when the process is gone.
  std::optional<ProcessStack> Take(int pid, StacksFile& file) {
    ProcessStack stack;
    stack.pid = pid;
    const std::string status = ReadProc(proc_, pid, "status");
    const std::string_view state = FieldOf(status, "State");
    if (state.empty() || state[0] == 'Z' || state[0] == 'X') return std::nullopt;
    stack.comm = Printable(FieldOf(status, "Name"));
    std::string note;
    if (file && Ours(pid, status, file)) {
      stack.text = Ask(pid, state[0], file, note);
      stack.python = !stack.text.empty();
    }
    if (!stack.python) {
      const std::string now = ReadProc(proc_, pid, "status");
      stack.text = KernelLines(proc_, pid, now.empty() ? status : now);
      if (!note.empty()) stack.text += note + "\n";
    }
    return stack;
  }

 private:
  bool Ours(int pid, std::string_view status, const StacksFile& file) const {
    return ((SignalSet(status, "SigCgt") >> (kSignal - 1)) & 1) != 0 &&
           HasOpen(proc_, pid, file.identity());
  }

  bool Pending(int pid) const {
    const std::string status = ReadProc(proc_, pid, "status");
    return ((SignalSet(status, "ShdPnd") >> (kSignal - 1)) & 1) != 0;
  }

  // What it wrote; empty with a note why not.
  std::string Ask(int pid, char state, StacksFile& file, std::string& note) {
    if (state == 'T' || state == 't') {
      note = "Python was not asked: the process is stopped";
    } else if (file.unanswered != 0) {
      note = fmt::format("Python was not asked: process {} has not answered yet", file.unanswered);
    } else if (Steady::now() >= deadline_) {
      note = "Python was not asked: the time was up";
    } else if (Pending(pid)) {
      file.unanswered = pid;
      note = "Python was asked earlier and has not answered yet";
    }
    if (!note.empty()) return {};
    const int64_t before = file.Size();
    const auto identity = IdentityOf(pid);
    if (!identity) return {};
    const auto pidfd = OpenPidfd(*identity);
    if (!pidfd || !SendSignal(pidfd->get(), kSignal).ok()) return {};
    Await(before, pid, file);
    std::string text = file.From(before);
    if (text.empty()) note = "Python was asked and did not answer";
    return text;
  }

  // Until it has written and nothing more arrived for a while.
  void Await(int64_t before, int pid, StacksFile& file) const {
    const auto end = std::min(deadline_, Steady::now() + kMostEach);
    int64_t size = before;
    auto grown = Steady::now();
    while (Steady::now() < end) {
      const auto now = Steady::now();
      if (const int64_t seen = file.Size(); seen != size) {
        size = seen;
        grown = now;
      } else if (now - grown >= kSettled && !Pending(pid)) {
        // Handled silently: someone else's handler.
        if (size != before || now - grown >= 4 * kSettled) return;
      }
      std::this_thread::sleep_for(kLook);
    }
    if (size == before && Pending(pid)) file.unanswered = pid;
  }

  const std::string proc_;
  const Steady::time_point deadline_;
};

// The thread that matters of one process: the one that took the signal, which is the
// main thread unless that blocks it, else the main thread.
const ThreadStack* MainThread(const std::vector<ThreadStack>& threads) {
  for (const ThreadStack& thread : threads) {
    if (thread.current && !thread.frames.empty()) return &thread;
  }
  for (auto thread = threads.rbegin(); thread != threads.rend(); ++thread) {
    if (!thread->frames.empty()) return &*thread;
  }
  return nullptr;
}

std::string PlaceOf(const RankStacks& rank) {
  if (rank.processes.empty()) return "(no process is left)";
  for (const ProcessStack& process : rank.processes) {
    if (!process.python) continue;
    const auto threads = ParseThreadStacks(process.text);
    const ThreadStack* main = MainThread(threads);
    if (main == nullptr) continue;
    const auto user = std::find_if(main->frames.begin(), main->frames.end(),
                                   [](const Frame& frame) { return frame.user; });
    const Frame& frame = user != main->frames.end() ? *user : main->frames.front();
    return fmt::format("{}:{} in {}", Printable(frame.file), frame.line, Printable(frame.function));
  }
  return "(no Python stack)";
}

}  // namespace

uint64_t SignalSet(std::string_view status, std::string_view field) {
  const std::string_view digits = FieldOf(status, field);
  uint64_t set = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), set, 16);
  return parsed.ec == std::errc() ? set : 0;
}

RankProcesses ProcessesOfRank(const std::vector<ProcessInfo>& all, Rank rank, int main_pid,
                              std::string stacks_file) {
  RankProcesses processes{rank, {}, std::move(stacks_file)};
  const auto alive = [](const ProcessInfo& process) { return process.state != 'Z'; };
  for (const ProcessInfo& process : all) {
    if (process.pid == main_pid && alive(process)) processes.pids.push_back(main_pid);
  }
  for (const ProcessInfo& process : DescendantsOf(all, main_pid)) {
    if (alive(process)) processes.pids.push_back(process.pid);
  }
  return processes;
}

std::vector<RankStacks> TakeStacks(const std::vector<RankProcesses>& ranks, milliseconds timeout,
                                   const std::string& proc) {
  std::map<std::string, StacksFile> files;
  for (const RankProcesses& rank : ranks) files.try_emplace(rank.stacks_file, rank.stacks_file);
  Taker taker(timeout, proc);
  // The first of each rank, then the second of each, so that a rank with many workers
  // does not take the time of the others.
  size_t most = 0;
  for (const RankProcesses& rank : ranks) most = std::max(most, rank.pids.size());
  std::vector<RankStacks> stacks(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) stacks[i].rank = ranks[i].rank;
  for (size_t place = 0; place < most; ++place) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (place >= ranks[i].pids.size()) continue;
      auto taken = taker.Take(ranks[i].pids[place], files.at(ranks[i].stacks_file));
      if (taken) stacks[i].processes.push_back(std::move(*taken));
    }
  }
  return stacks;
}

std::string RankStacks::Text(size_t limit) const {
  constexpr std::string_view kCut = "...\n";
  std::string text;
  for (const ProcessStack& process : processes) {
    text += fmt::format("process {} ({}):\n", process.pid, process.comm);
    for (const std::string& line : PlainLines(process.text, 100'000)) {
      text += "  " + Printable(line) + "\n";
    }
    if (text.size() > limit) break;
  }
  if (text.size() <= limit) return text;
  text.resize(limit > kCut.size() ? limit - kCut.size() : 0);
  const size_t line_end = text.rfind('\n');
  text.resize(line_end == std::string::npos ? 0 : line_end + 1);
  return text + std::string(kCut);
}

std::string OddRanks::Text() const {
  std::string text;
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < ranks.size() && i < kShown; ++i) {
    text += fmt::format("{}rank {} is at {}", i == 0 ? "" : ", ", ranks[i].value, at[i]);
  }
  if (ranks.size() > kShown) text += fmt::format(", {} more elsewhere", ranks.size() - kShown);
  return text + fmt::format("; the other {} are at {}", others, others_at);
}

std::optional<OddRanks> OddRank(const std::vector<RankStacks>& stacks) {
  std::map<std::string, size_t> counts;
  std::vector<std::pair<Rank, std::string>> places;
  for (const RankStacks& rank : stacks) {
    places.emplace_back(rank.rank, PlaceOf(rank));
    ++counts[places.back().second];
  }
  OddRanks odd;
  for (const auto& [place, count] : counts) {
    if (2 * count <= stacks.size()) continue;
    odd.others_at = place;
    odd.others = count;
  }
  if (odd.others == 0 || odd.others == stacks.size()) return std::nullopt;
  std::sort(places.begin(), places.end());
  for (auto& [rank, place] : places) {
    if (place == odd.others_at) continue;
    odd.ranks.push_back(rank);
    odd.at.push_back(std::move(place));
  }
  return odd;
}

}  // namespace athanor
