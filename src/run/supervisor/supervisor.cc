#include "run/supervisor/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "run/supervisor/cgroup_counters.h"
#include "run/supervisor/process_tree.h"

namespace athanor::supervisor {
namespace {

// The first line is moved at once; then at most one round every 4 ms while
// little comes, so that a script which prints unbuffered is not slowed by a
// wake-up of ours per line. A pipe holds 1 MiB in the meantime.
constexpr int64_t kDrainPauseMs = 4;
constexpr int64_t kBusyBytes = 256 << 10;
constexpr int64_t kRoundBytes = 4 << 20;
// How long to wait for the end of killed processes (one may be stuck in the kernel), and of pipes
// that a process outside still holds.
constexpr int64_t kKilledBoundMs = 5'000;
constexpr int64_t kKillAgainMs = 50;
// How often to check a rank that was asked to stop for programs that appeared since; and at most
// this part of the time, if /proc shows the whole machine.
constexpr int64_t kAskAgainMs = 50;
constexpr int64_t kAskShare = 20;
// A full disk is checked again after this, without a time limit unless a stop was requested or a
// rank failed: then its last output may use most of the reserve.
constexpr int64_t kRoomPauseMs = 200;
constexpr int64_t kRoomAtEndMs = 1'000;
constexpr int64_t kExitReserve = 128 << 10;
constexpr int64_t kRecordReserve = 32 << 10;
constexpr int64_t kNever = INT64_MAX;
// How often to check whether the exit record could still be read by anyone.
constexpr int64_t kFolderLookMs = 5'000;

}  // namespace

Supervisor::Supervisor(SupervisorPlan plan, Namespaces namespaces, int signal_fd)
    : plan_(std::move(plan)), namespaces_(namespaces), signal_fd_(signal_fd) {
  record_.ranks.resize(plan_.ranks.size());
  ranks_.resize(plan_.ranks.size());
  if (plan_.memory_watch_bytes > 0) {
    memory_.emplace(static_cast<uint64_t>(plan_.memory_watch_bytes));
    record_.cgroup.memory_limit = plan_.memory_watch_bytes;
    record_.cgroup.oom_kills = 0;
  }
  record_.start_wall_ms = WallMs();
  record_.start_boottime_ms = BoottimeMs();
}

int Supervisor::Run(UniqueFd ready_fd) {
  Status ready = OpenFiles();
  if (exit_file_ && ready.ok()) ready = EnterView(plan_, namespaces_, &record_.off);
  if (ready.ok()) {
    StartRanks();
    WriteStarted();
    (void)WriteWhole(ready_fd.get(), "S");
    ready_fd.reset();
    Loop();
  } else {
    record_.setup_code = RowOf(ready.error().code).name;
    record_.setup_error = ready.error().what;
    (void)WriteWhole(ready_fd.get(), "E" + ready.error().what);
    if (!exit_file_) return 74;
  }
  return Finish();
}

Status Supervisor::OpenFiles() {
  // The exit record first: what fails after it can be reported in it.
  ATHANOR_TRY(exit_file_, RecordFile::Open(plan_.exit_path, kExitReserve));
  ATHANOR_TRY(started_file_, RecordFile::Open(plan_.started_path, 0));
  outer_proc_.reset(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  ProtectFromOom();
  OpenCgroups();
  return OpenStreams();
}

Status Supervisor::OpenStreams() {
  std::map<std::string, int> by_path;
  for (size_t i = 0; i < plan_.ranks.size(); ++i) {
    for (bool err : {false, true}) {
      const std::string& path = err ? plan_.ranks[i].stderr_path : plan_.ranks[i].stdout_path;
      const auto [at, is_new] = by_path.try_emplace(path, static_cast<int>(streams_.size()));
      if (is_new) {
        ATHANOR_TRY(auto stream,
                    OutputStream::Open(path, plan_.log_cap_bytes, plan_.uid, plan_.gid));
        streams_.push_back(std::move(stream));
      }
      (err ? ranks_[i].err : ranks_[i].out) = at->second;
    }
  }
  return Ok();
}

void Supervisor::OpenCgroups() {
  for (const auto& join : plan_.cgroups) {
    CgroupDir cgroup;
    cgroup.version = join.version;
    cgroup.controllers = join.controllers;
    cgroup.dir.reset(::open(join.dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (cgroup.dir) {
      cgroup.join.reset(::openat(cgroup.dir.get(), join.version == 1 ? "tasks" : "cgroup.procs",
                                 O_WRONLY | O_CLOEXEC));
    }
    if (cgroup.join) {
      cgroups_.push_back(std::move(cgroup));
    } else {
      record_.off.push_back("cgroup " + join.dir + ": " + std::strerror(errno) +
                            "; its limits are off");
    }
  }
}

void Supervisor::ProtectFromOom() {
  const UniqueFd fd(::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  char text[16];
  const ssize_t n = fd ? ::read(fd.get(), text, sizeof text) : -1;
  // Lowering it takes CAP_SYS_RESOURCE; without, the ranks' larger memory protects us.
  if (n > 0 && ::pwrite(fd.get(), "-1000", 5, 0) == 5) {
    oom_score_adj_.assign(text, static_cast<size_t>(n));
  }
}

void Supervisor::StartRanks() {
  SpawnContext context;
  context.plan = &plan_;
  context.cgroups = &cgroups_;
  context.oom_score_adj = oom_score_adj_;
  std::vector<Spawning> spawning;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.started_ms = BoottimeMs();
    spawning.push_back(BeginRank(context, plan_.ranks[i],
                                 streams_[static_cast<size_t>(rank.out)].write_end(),
                                 streams_[static_cast<size_t>(rank.err)].write_end()));
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    RankExit& end = record_.ranks[i];
    end.start = FinishRank(std::move(spawning[i]));
    rank.pid = static_cast<pid_t>(end.start.inner_pid);
    if (end.start.spawn_errno == 0) {
      have_children_ = true;
      continue;
    }
    end.exit_code = end.start.spawn_errno == ENOENT ? 127 : 126;
    end.ended = ++ends_;
    Fell(i);
  }
  for (auto& stream : streams_) stream.CloseWriteEnd();
  if (!AnyRankRuns()) {
    last_rank_ended_ms_ = BoottimeMs();
  } else if (record_.first_failed_rank >= 0) {
    AskRanksToStop();
    kill_ranks_ms_ = BoottimeMs() + plan_.peer_grace_ms;
  }
}

void Supervisor::Fell(size_t rank) {
  if (record_.first_failed_rank >= 0) return;
  record_.first_failed_rank = static_cast<int64_t>(rank);
  record_.fell_by_itself = record_.stop_signal == 0;
}

void Supervisor::WriteStarted() {
  StartedRecord started;
  started.wall_ms = WallMs();
  started.boottime_ms = BoottimeMs();
  started.off = record_.off;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    RankStart& start = record_.ranks[i].start;
    // The old /proc shows a pidfd's process by its outer number.
    const UniqueFd pidfd(
        ranks_[i].pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, ranks_[i].pid, 0)) : -1);
    if (pidfd && outer_proc_) {
      const std::string name = "self/fdinfo/" + std::to_string(pidfd.get());
      const std::string info = ReadWholeAt(outer_proc_.get(), name.c_str());
      const size_t at = info.find("Pid:");
      if (at != info.npos) start.outer_pid = std::atoi(info.c_str() + at + 4);
    }
    started.ranks.push_back(start);
  }
  outer_proc_.reset();
  if (auto bytes = SerializeStarted(started)) (void)started_file_->Replace(*bytes, false);
}

bool Supervisor::AnyRankRuns() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.pid > 0; });
}

int64_t Supervisor::NextDeadline() const {
  int64_t next = kNever;
  if (killing_) {
    next = BoottimeMs() + kKillAgainMs;
  } else {
    if (kill_ranks_ms_ >= 0) next = std::min(next, kill_ranks_ms_);
    if (ask_again_ms_ >= 0 && AnyRankRuns()) next = std::min(next, ask_again_ms_);
    if (last_rank_ended_ms_ >= 0) next = std::min(next, last_rank_ended_ms_ + plan_.linger_ms);
  }
  if (waits_for_room_) next = std::min(next, room_again_ms_);
  if (memory_) next = std::min(next, memory_again_ms_);
  return std::min(next, folder_again_ms_);
}

void Supervisor::ApplyDeadlines() {
  const int64_t now = BoottimeMs();
  if (killing_) {
    KillEverything();
  } else if (last_rank_ended_ms_ >= 0 && now >= last_rank_ended_ms_ + plan_.linger_ms) {
    record_.leftovers_killed = true;
    KillEverything();
  } else if (kill_ranks_ms_ >= 0 && now >= kill_ranks_ms_) {
    record_.killed = AnyRankRuns();
    KillEverything();
  } else if (ask_again_ms_ >= 0 && now >= ask_again_ms_) {
    AskWhoIsToBeAsked();
  }
}

void Supervisor::Loop() {
  while (have_children_) {
    const int64_t now = BoottimeMs();
    const bool streams = now >= drain_again_ms_;
    if (now >= folder_again_ms_) EndWithFolder(now);
    WaitForSomething(streams, std::min(NextDeadline(), streams ? kNever : drain_again_ms_));
    TakeSignals();
    if (BoottimeMs() >= drain_again_ms_) DrainAll(kRoundBytes);
    Reap();
    if (!have_children_) break;
    if (memory_ && BoottimeMs() >= memory_again_ms_) WatchMemory();
    ApplyDeadlines();
    if (killing_ && BoottimeMs() > killing_since_ms_ + kKilledBoundMs) break;
  }
  FinishStreams();
}

// The agent does the same earlier, if it is there.
void Supervisor::EndWithFolder(int64_t now) {
  folder_again_ms_ = now + kFolderLookMs;
  if (!killing_ && exit_file_->FolderGone()) KillEverything();
}

// No process is left to write, so the pipes have everything. A pipe that was passed to a process
// outside stays open; only what it has now is read.
void Supervisor::FinishStreams() {
  const int64_t until = BoottimeMs() + kKilledBoundMs;
  const auto drain = [&] {
    for (auto& stream : streams_) {
      while (stream.open() && stream.Drain(kRoundBytes) > 0 && BoottimeMs() < until) {
      }
    }
    SayWhetherItWaits();
  };
  for (drain(); waits_for_room_; drain()) {
    const bool bounded =
        record_.stop_signal != 0 || record_.first_failed_rank >= 0 || exit_file_->FolderGone();
    if (bounded && BoottimeMs() > std::max(stop_asked_ms_, last_rank_ended_ms_) + kRoomAtEndMs) {
      exit_file_->ShrinkReserve(kRecordReserve);
      drain();
      break;
    }
    WaitForSomething(false, BoottimeMs() + kRoomPauseMs);
    TakeSignals();
  }
  for (auto& stream : streams_) {
    if (stream.waits_for_room()) stream.GiveUpWaiting();
    stream.Close();
  }
}

void Supervisor::WaitForSomething(bool streams, int64_t until_ms) {
  std::vector<pollfd> fds{{signal_fd_, POLLIN, 0}};
  if (streams) {
    for (const auto& stream : streams_) {
      if (stream.open() && !stream.waits_for_room()) {
        fds.push_back({stream.poll_fd(), POLLIN, 0});
      }
    }
  }
  const int64_t wait = until_ms == kNever ? -1 : std::max<int64_t>(0, until_ms - BoottimeMs());
  (void)::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(wait, 60'000)));
}

void Supervisor::DrainAll(int64_t limit) {
  int64_t taken = 0;
  const bool look = BoottimeMs() >= room_again_ms_;
  for (auto& stream : streams_) {
    if (stream.open() && (look || !stream.waits_for_room())) taken += stream.Drain(limit);
  }
  if (taken > 0 && taken < kBusyBytes) drain_again_ms_ = BoottimeMs() + kDrainPauseMs;
  SayWhetherItWaits();
  if (waits_for_room_ && look) room_again_ms_ = BoottimeMs() + kRoomPauseMs;
}

void Supervisor::SayWhetherItWaits() {
  const bool waits = std::any_of(streams_.begin(), streams_.end(), [](const OutputStream& stream) {
    return stream.open() && stream.waits_for_room();
  });
  if (waits == waits_for_room_) return;
  waits_for_room_ = waits;
  (void)::prctl(PR_SET_NAME, waits ? kWaitsForRoomName : kSupervisorName, 0, 0, 0);
}

void Supervisor::TakeSignals() {
  signalfd_siginfo info{};
  while (::read(signal_fd_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGTERM && number != SIGUSR2) continue;
    if (record_.stop_signal == 0) {
      record_.stop_signal = number;
      stop_asked_ms_ = BoottimeMs();
    }
    if (number == SIGUSR2) {
      record_.killed = record_.killed || AnyRankRuns();
      KillEverything();
      continue;
    }
    // A second request does not postpone the end.
    if (kill_ranks_ms_ < 0 && plan_.stop_grace_ms > 0) {
      kill_ranks_ms_ = stop_asked_ms_ + plan_.stop_grace_ms;
    }
    AskRanksToStop();
  }
}

void Supervisor::AskRanksToStop() {
  for (Rank& rank : ranks_) rank.stop.Again();
  AskWhoIsToBeAsked();
}

void Supervisor::AskWhoIsToBeAsked() {
  if (!AnyRankRuns()) return;
  const int64_t begin = BoottimeMs();
  const auto all = ListProcesses();
  for (Rank& rank : ranks_) {
    if (rank.pid <= 0) continue;
    const auto pids = rank.stop.Next(
        all, rank.pid, [](int pid) { return ReadTraits("/proc", pid); }, begin);
    for (int pid : pids) (void)::kill(pid, SIGTERM);
  }
  const int64_t now = BoottimeMs();
  ask_again_ms_ = now + std::max(kAskAgainMs, (now - begin) * kAskShare);
}

void Supervisor::WatchMemory() {
  const MemoryWatch::Seen seen = memory_->Look(::getpid());
  if (seen.kill && ::kill(seen.kill->pid, SIGKILL) == 0) {
    ++record_.cgroup.oom_kills;
    record_.oom_pid = seen.kill->pid;
    record_.oom_name = seen.kill->name;
  }
  record_.cgroup.memory_peak = static_cast<int64_t>(memory_->peak());
  memory_again_ms_ = BoottimeMs() + seen.pause_ms;
}

void Supervisor::KillEverything() {
  if (!killing_) {
    killing_ = true;
    killing_since_ms_ = BoottimeMs();
  }
  if (namespaces_.pid) {
    // As init of the namespace: everything in it but ourselves.
    (void)::kill(-1, SIGKILL);
    return;
  }
  for (const auto& process : DescendantsOf(ListProcesses(), ::getpid())) {
    (void)::kill(process.pid, SIGKILL);
  }
}

void Supervisor::Reap() {
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid < 0 && errno == EINTR) continue;
    // We adopt every orphan, so no child left means no process left.
    if (pid < 0) have_children_ = false;
    if (pid <= 0) return;
    const auto rank =
        std::find_if(ranks_.begin(), ranks_.end(), [pid](const Rank& r) { return r.pid == pid; });
    if (rank != ranks_.end()) {
      RankEnded(static_cast<size_t>(rank - ranks_.begin()), status, usage);
      continue;
    }
    ++record_.orphans;
    record_.orphan_cpu_us += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
                             usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  }
}

void Supervisor::RankEnded(size_t index, int status, const rusage& usage) {
  const int64_t now = BoottimeMs();
  RankExit& end = record_.ranks[index];
  end.wall_ms = now - ranks_[index].started_ms;
  end.ended = ++ends_;
  end.cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
               usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  end.max_rss_kb = usage.ru_maxrss;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.core = WCOREDUMP(status);
    end.exit_code = 128 + end.signal;
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  ranks_[index].pid = 0;
  const bool failed = end.exit_code != 0;
  if (failed) Fell(index);
  if (failed && waits_for_room_) record_.disk_full = true;
  if (!AnyRankRuns()) {
    last_rank_ended_ms_ = now;
    if (stop_asked_ms_ >= 0) record_.stop_to_end_ms = now - stop_asked_ms_;
  } else if (failed && kill_ranks_ms_ < 0 && !killing_) {
    kill_ranks_ms_ = now + plan_.peer_grace_ms;
    AskRanksToStop();
  }
}

int Supervisor::Finish() {
  record_.end_wall_ms = WallMs();
  record_.end_boottime_ms = BoottimeMs();
  ReadCgroupCounters();
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].out < 0 || ranks_[i].err < 0) continue;
    record_.ranks[i].out = streams_[static_cast<size_t>(ranks_[i].out)].end();
    if (ranks_[i].err != ranks_[i].out) {
      record_.ranks[i].err = streams_[static_cast<size_t>(ranks_[i].err)].end();
    }
  }
  for (auto& stream : streams_) {
    const int64_t error = stream.end().write_errno;
    if (error == ENOSPC || error == EDQUOT) record_.disk_full = true;
    stream.Sync();  // a complete record promises a complete log
  }
  const auto bytes = SerializeExit(record_);
  if (!bytes) return 70;
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (exit_file_->Replace(*bytes, true).ok()) return 0;
    // No space, and none was reserved: there may be some when other processes end.
    (void)::poll(nullptr, 0, 250);
  }
  return 74;
}

void Supervisor::ReadCgroupCounters() {
  const CgroupEnd watched = record_.cgroup;
  for (const auto& cgroup : cgroups_) AddCounters(cgroup, &record_.cgroup);
  if (!memory_) return;
  // A cgroup that refused the limit may still count; we enforced the limit.
  record_.cgroup.oom_kills = watched.oom_kills;
  record_.cgroup.memory_peak = watched.memory_peak;
  record_.cgroup.memory_limit = watched.memory_limit;
}

}  // namespace athanor::supervisor
