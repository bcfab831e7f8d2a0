#include "run/agent/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/io/held_folder.h"
#include "base/log.h"
#include "base/text/text.h"
#include "job/unread.h"
#include "link/attempt_dir.h"
#include "link/local_job_files.h"
#include "link/plan.h"
#include "link/remote_job_files.h"
#include "link/server_line.h"
#include "run/agent/ending.h"
#include "run/agent/folder_watch.h"
#include "run/agent/held_clock.h"
#include "run/agent/host_network.h"
#include "run/agent/outputs.h"
#include "run/agent/param_reads.h"
#include "run/agent/preparation.h"
#include "run/agent/script_line.h"
#include "run/agent/server_guard.h"
#include "run/agent/survival.h"
#include "run/agent/upload.h"
#include "run/contract/contract.h"
#include "run/isolate/cgroup_policy.h"
#include "run/isolate/job_peers.h"
#include "run/isolate/links.h"
#include "run/isolate/start_lane.h"
#include "run/isolate/usage.h"
#include "run/mlflow/mlflow_proxy.h"
#include "run/ship/shipper.h"
#include "run/supervisor/exit_record.h"
#include "run/supervisor/launch_supervisor.h"
#include "watch/scrub/scrubber.h"

namespace athanor {
namespace {

// How long a successor waits for the status of a supervisor that was being started.
constexpr int kLaunchWaitMs = 5'000;
// How long a supervisor may take to end after it was told to kill its ranks.
constexpr int kEndWaitMs = 10'000;
// How long the report of another host may take, once its ranks have ended.
constexpr int kOtherHostMs = 3'000;
// How often an agent that waits for an attempt checks whether there can still be one.
constexpr int kSpareLookMs = 2'000;

// No write of the script was cut short: it had its notice, or ended by itself with 0 or a status
// that it chose (save, then exit 75, is how scripts ask for another attempt). Status 1 comes from
// an exception, perhaps in the middle of a save.
bool EndedCleanly(const std::optional<ExitRecord>& record) {
  if (!record || record->killed) return false;
  return record->stop_signal == SIGTERM ||
         std::all_of(record->ranks.begin(), record->ranks.end(), [](const RankExit& rank) {
           return rank.signal == 0 && rank.exit_code != 1 && rank.exit_code >= 0 &&
                  rank.exit_code < 126;
         });
}

Cause CauseOfCutLog(const ExitInfo& exit) {
  const std::string bytes = HumanBytes(exit.log_dropped);
  if (exit.disk_full) {
    return {"log_capped", "the log was cut: there was no room on the disk for the last " + bytes,
            "df -h", ""};
  }
  return {"log_capped", "the log was cut: " + bytes + " were printed beyond its limit and not kept",
          "print less, or raise limits.log_size", ""};
}

class Agent {
 public:
  Agent(HostPlan plan, HeldFolder ml, std::unique_ptr<JobFiles> files,
        Result<std::unique_ptr<ScriptLine>> script_line)
      : script_line_(std::move(script_line)),
        paths_(std::move(plan.paths)),
        dir_(paths_.dir),
        ml_(std::move(ml)),
        plan_(std::move(plan.attempt)),
        files_(std::move(files)),
        log_(STDERR_FILENO, clock_),
        held_(dir_, clock_),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        survival_({plan_, paths_, *files_, ml_, clock_, log_, [this] { return held_.held_ms(); },
                   [this](Cause cause) {
                     StopItself(std::move(cause));
                     Wake();
                   }}) {}

  int Run();

 private:
  std::string Path(const char* name) const { return JoinPath(dir_, name); }

  void ForwardInto(int64_t pid);
  void TellOfNoServer(const Error& error);
  void StartShipping();
  void StartTracking();
  void ListenForCommands();
  void OnCommand(const ReplyFrame& frame);
  UsageFrame Usage();
  FolderWatch::Options EndWithFolder();
  void KillScript();
  int Pidfd();      // of the supervisor; -1: none yet
  bool Adopt();     // a supervisor of an earlier agent, or its exit record
  Status Launch();  // prepares and starts; a failure was not reported yet
  void Watch();     // until the supervisor ended
  void StopItself(Cause cause);
  void CarryOutStop();
  std::optional<int64_t> StopGrace();  // of the stop that it knows about
  void Wake();
  int WatchTimeout() const;
  void CheckLimits();
  void TellOfFullDisk();
  std::string FailureWords();
  void HearOtherHosts();
  int Finish();
  int Leave(const Cause& cause);
  std::optional<Cause> FailedBefore() const;

  const Result<std::unique_ptr<ScriptLine>> script_line_;  // null: the server is on this machine
  const HostPaths paths_;
  const std::string& dir_;  // of paths_
  // The contract's tree, from a folder that the script does not see: what the script does to its
  // own folders, even while no agent was there, cannot lead an agent elsewhere.
  HeldFolder ml_;
  SystemClock clock_;
  AttemptPlan plan_;
  const std::unique_ptr<JobFiles> files_;
  Logger log_;
  HeldClock held_;
  std::unique_ptr<Shipper> shipper_;
  std::unique_ptr<MlflowProxy> mlflow_;  // null: the script logs elsewhere
  HostNetwork network_;
  std::vector<SecretValue> secrets_;
  std::shared_ptr<const SecretPatterns> patterns_;
  std::thread commands_;
  AttemptCgroup cgroup_;
  bool mounts_ = false;  // the script has /opt/ml
  std::atomic<int64_t> supervisor_pid_{0};
  UniqueFd wake_;
  std::atomic<uint64_t> last_cpu_ns_{0};
  Millis last_sample_{0};
  std::optional<Millis> script_start_;
  std::string packages_;
  ParamReads params_;
  Survival survival_;

  Mutex mutex_;
  UniqueFd pidfd_ GUARDED_BY(mutex_);  // of the supervisor; once set, it stays
  std::optional<StopFrame> stop_ GUARDED_BY(mutex_);
  bool stop_done_ = false;
  bool hastened_ GUARDED_BY(mutex_) = false;  // its grace was cut
  std::optional<bool> waits_for_room_;        // unknown after an earlier agent: sent again
  std::optional<Millis> kill_at_;             // then the grace of the stop is over
  std::atomic<bool> fenced_{false};
  std::atomic<bool> leaving_{false};
};

// The server and the MLflow proxy are at this machine's loopback.
void Agent::ForwardInto(int64_t pid) {
  const auto forwarded =
      network_.Forward({paths_.url, mlflow_ ? mlflow_->url() : std::string()}, pid);
  if (!forwarded) TellOfNoServer(forwarded.error());
}

void Agent::TellOfNoServer(const Error& error) {
  log_.Log(LogLevel::kError, "network", {{"why", error.what}});
  shipper_->Send(
      NoteFrame{{CauseKind::kNetwork, "the script cannot reach this server: " + error.what,
                 error.hint, error.why}});
}

void Agent::StartShipping() {
  Shipper::Options options{plan_,
                           clock_,
                           log_,
                           patterns_,
                           [this] { return Usage(); },
                           [this](const ReplyFrame& frame) { OnCommand(frame); }};
  survival_.HookInto(options);
  shipper_ = std::make_unique<Shipper>(std::move(options));
  survival_.Use(*shipper_);
  StartTracking();
  if (!script_line_) TellOfNoServer(script_line_.error());
  shipper_->Follow(FirstRank(plan_), LogStream::kSetup, JoinPath(dir_, "logs/setup"));
  shipper_->Start();
  commands_ = std::thread([this] { ListenForCommands(); });
}

// Before any thread can report a fence, and before the script gets its environment.
void Agent::StartTracking() {
  auto& env = plan_.spec.env;
  const auto token = env.find("MLFLOW_TRACKING_TOKEN");
  if (token == env.end() || env.contains("MLFLOW_TRACKING_URI")) return;
  MlflowProxy::Options options{Path(attempt_dir::kMlflow),
                               plan_.server,
                               token->second,
                               log_,
                               [this](Cause cause) { shipper_->Send(NoteFrame{std::move(cause)}); },
                               ExitGate(patterns_)};
  options.pin = plan_.pin;
  if (paths_.is_server_here())
    options.page = paths_.url;  // agents of other machines are shown none
  options.run = plan_.job;
  options.on_points = [this](PointBatch batch) {
    batch.host = plan_.host;
    batch.rank = FirstRank(plan_);
    survival_.OnPoints(batch);
  };
  auto started = MlflowProxy::Start(std::move(options));
  if (!started) {
    // The script still reaches the server, as long as it is there.
    log_.Log(LogLevel::kError, "MLflow calls are not kept", {{"why", started.error().what}});
    if (!paths_.url.empty()) env["MLFLOW_TRACKING_URI"] = paths_.url;
    return;
  }
  mlflow_ = std::move(*started);
  env["MLFLOW_TRACKING_URI"] = mlflow_->url();
}

// A separate long poll, so that a stop arrives at once and not with the next report.
void Agent::ListenForCommands() {
  const auto line = ServerLine::Of(plan_);
  if (!line) return;
  auto client = line->Client();
  LinePauses pauses;
  ServerGuard guard(paths_.home, clock_);
  int failures = 0;
  while (!leaving_ && !fenced_) {
    HttpCall call;
    // While a stop is in progress, only a shorter one is news.
    const auto stopping = StopGrace();
    if (stopping && *stopping <= 0) return;
    call.target = "/agent/v1/commands" +
                  (stopping ? "?stopping_ms=" + std::to_string(*stopping) : std::string());
    line->Sign(call);
    call.cancel_fd = wake_.get();
    call.read_timeout = std::chrono::seconds(40);
    auto reply = client.Do(call);
    if (leaving_) return;
    if (reply) {
      guard.Answered();
    } else {
      guard.Unanswered();
    }
    if (reply && reply->status == 410) return OnCommand(FencedFrame{});
    if (reply && reply->ok()) {
      failures = 0;
      pauses.Answered();
      auto frames = DecodeReply(reply->body);
      for (size_t i = 0; frames && i < frames->size(); ++i) OnCommand((*frames)[i]);
      // A server that repeats the same command would be asked without end.
      if (!stopping || StopGrace() != stopping) continue;
    }
    failures = std::min(failures + 1, 6);
    Millis pause(100 << failures);
    if (!reply && IsStranger(reply.error())) {
      pauses.Tell(log_, reply.error());
      pause = pauses.After(reply.error());
    }
    ::pollfd wait{wake_.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(pause.count()));
  }
}

void Agent::OnCommand(const ReplyFrame& frame) {
  if (std::holds_alternative<FencedFrame>(frame)) {
    fenced_ = true;
    if (mlflow_) mlflow_->GiveUp();
  } else if (const auto* stop = std::get_if<StopFrame>(&frame)) {
    MutexLock lock(mutex_);
    if (stop_ && stop->grace_ms >= stop_->grace_ms) return;
    if (stop_) {
      stop_->grace_ms = stop->grace_ms;
      hastened_ = true;
    } else {
      stop_ = *stop;
    }
  } else {
    return;
  }
  Wake();
}

std::optional<int64_t> Agent::StopGrace() {
  MutexLock lock(mutex_);
  return stop_ ? std::optional(stop_->grace_ms) : std::nullopt;
}

void Agent::Wake() {
  uint64_t one = 1;
  [[maybe_unused]] auto n = ::write(wake_.get(), &one, sizeof one);
}

UsageFrame Agent::Usage() {
  UsageFrame frame;
  frame.held_ms = held_.held_ms();
  if (supervisor_pid_ == 0) return frame;
  auto sample = SampleUsage(cgroup_, supervisor_pid_);
  if (!sample) return frame;
  auto now = clock_.Monotonic();
  if (last_sample_.count() != 0 && now > last_sample_ && sample->cpu_ns >= last_cpu_ns_) {
    frame.cpu_percent = static_cast<uint32_t>((sample->cpu_ns - last_cpu_ns_) / 10'000 /
                                              static_cast<uint64_t>((now - last_sample_).count()));
  }
  last_sample_ = now;
  last_cpu_ns_ = sample->cpu_ns;
  frame.memory_bytes = sample->memory_bytes;
  frame.memory_peak = sample->memory_peak;
  return frame;
}

void Agent::KillScript() {
  const MutexLock lock(mutex_);
  if (pidfd_) (void)KillAllNow(pidfd_.get()).ok();
}

int Agent::Pidfd() {
  const MutexLock lock(mutex_);
  return pidfd_.get();
}

// No one would ever read the results of an attempt without a folder. It ends as if another attempt
// had taken over; it does not wait long for anything, such as a server that is gone, too.
FolderWatch::Options Agent::EndWithFolder() {
  return {dir_,
          [this] {
            log_.Log(LogLevel::kError, "the attempt's folder is gone: ending", {{"dir", dir_}});
            fenced_ = true;
            KillScript();
            Wake();
          },
          [this] {
            KillScript();
            ::pollfd over{Pidfd(), POLLIN, 0};
            if (over.fd >= 0) ::poll(&over, 1, kEndWaitMs);
            ::_exit(1);
          }};
}

bool Agent::Adopt() {
  if (Exists(Path(attempt_dir::kLaunching))) {
    for (int waited = 0; waited < kLaunchWaitMs && !Exists(Path(attempt_dir::kSupervisorStatus));
         waited += 20) {
      ::usleep(20'000);
    }
  }
  if (!Exists(Path(attempt_dir::kSupervisorStatus))) return false;
  auto plan_text = ReadFile(Path(attempt_dir::kSupervisorPlan));
  if (plan_text) {
    if (auto plan = ParsePlan(*plan_text)) {
      cgroup_ = AttemptCgroupOf(*plan);
      mounts_ = !plan->mounts.empty();
    }
  }
  if (auto found = FindSupervisor(Path(attempt_dir::kSupervisorStatus))) {
    const MutexLock lock(mutex_);
    pidfd_ = std::move(found->pidfd);
    supervisor_pid_ = found->status.pid;
  }
  // Found or not: it was started once and never will be again. Reported again, in case the server
  // never heard about it.
  shipper_->Send(StartedFrame{0, {}, static_cast<uint64_t>(supervisor_pid_.load())});
  FollowScript(*shipper_, paths_, ml_, plan_, *files_);
  for (uint32_t local = 0; local < RanksHere(plan_); ++local) {
    const auto spool = ml_ / kOwnFolder / SpoolName(local);
    if (auto status = shipper_->FollowSpool(FirstRank(plan_) + local, spool); !status) {
      log_.Log(LogLevel::kWarning, "spool", {{"why", status.error().what}});
    }
  }
  if (supervisor_pid_ != 0) ForwardInto(supervisor_pid_);
  packages_ = ReadFile(Path(attempt_dir::kPackages)).value_or("");
  const auto ml = Path(attempt_dir::kMl);
  auto checkpoints = HoldCheckpoints(
      dir_, ml_,
      PlaceOfCheckpoints(plan_, {ml, mounts_ ? "/opt/ml" : ml, {}, {}, paths_.job_dir(plan_.job)})
          .outside,
      false);
  if (!checkpoints) {
    log_.Log(LogLevel::kWarning, "checkpoints", {{"why", checkpoints.error().what}});
  }
  survival_.Start(checkpoints.value_or(HeldFolder()), std::nullopt, supervisor_pid_.load());
  if (auto started = ReadFile(Path(attempt_dir::kStarted))) {
    if (auto record = ParseStarted(*started)) script_start_ = Millis(record->boottime_ms);
  }
  return true;
}

Status Agent::Launch() {
  Preparation preparation{paths_,    ml_,      plan_,     *files_, clock_,        log_,
                          *shipper_, secrets_, patterns_, {},      network_.own()};
  preparation.cancelled = [this] {
    MutexLock lock(mutex_);
    return stop_.has_value() || fenced_.load();
  };
  ATHANOR_TRY(auto prepared, Prepare(preparation));
  cgroup_ = prepared.cgroup;
  mounts_ = prepared.isolation.mount;
  packages_ = prepared.packages;
  params_.Watch(plan_.spec, Path(attempt_dir::kMl));
  ForwardInto(0);
  ATHANOR_CHECK_OK(ReplaceFile(Path(attempt_dir::kLaunching), ""));
  // A script without its own cgroup would stay in ours.
  if (cgroup_.Find("cpu") == nullptr) MoveFromStartLane({::getpid()});
  auto launched =
      LaunchSupervisor(paths_.supervisor, prepared.plan_path, prepared.isolation, network_.fd());
  if (!launched) return Fail(launched.error());
  {
    const MutexLock lock(mutex_);
    pidfd_ = std::move(launched->pidfd);
    supervisor_pid_ = launched->pid;
  }
  waits_for_room_ = false;
  // The script is starting; what follows does not delay it.
  script_start_ = clock_.Monotonic();
  std::vector<std::string> off = prepared.isolation.off;
  off.insert(off.end(), prepared.cgroup.off.begin(), prepared.cgroup.off.end());
  if (!network_.off().empty()) off.push_back(network_.off());
  FollowScript(*shipper_, paths_, ml_, plan_, *files_);
  shipper_->Send(StartedFrame{held_.held_ms(), off, static_cast<uint64_t>(launched->pid)});
  survival_.Start(prepared.checkpoint_dir, prepared.resumed_step, launched->pid);
  // The plan in memory can be released when the supervisor has started its ranks, or has ended.
  ::pollfd ready{launched->ready.get(), POLLIN, 0};
  ::poll(&ready, 1, kLaunchWaitMs);
  ::unlink(prepared.plan_path.c_str());
  MoveFromStartLane({launched->pid, ::getpid()});
  return Ok();
}

// Rules and hangs are checked once per second; limits when they are due.
int Agent::WatchTimeout() const {
  int64_t timeout = 1'000;
  const auto now = clock_.Monotonic();
  auto limit = plan_.spec.limits.max_runtime;
  if (limit.count() > 0 && script_start_ && !stop_done_) {
    timeout = std::min(timeout, (*script_start_ + limit - now).count());
  }
  if (kill_at_) timeout = std::min(timeout, (*kill_at_ - now).count());
  return static_cast<int>(std::max<int64_t>(timeout, 0));
}

void Agent::CheckLimits() {
  const auto lost_after = plan_.spec.limits.lost_after;
  if (lost_after.count() > 0 && shipper_->silence() > lost_after) {
    StopItself({"server_silent",
                "stopped itself: the server did not answer for " + HumanDuration(lost_after),
                "ath retry " + ShellQuote(plan_.spec.name), ""});
  }
  const auto limit = plan_.spec.limits.max_runtime;
  if (limit.count() > 0 && script_start_ && clock_.Monotonic() >= *script_start_ + limit) {
    StopItself({"time_limit", "ran longer than its limit of " + HumanDuration(limit),
                "ath retry " + ShellQuote(plan_.spec.name) + " --max-time " +
                    std::to_string(2 * limit.count() / 1000) + "s",
                ""});
  }
  // The supervisor has the job's own grace; the grace of this stop may be shorter.
  if (kill_at_ && clock_.Monotonic() >= *kill_at_) {
    kill_at_.reset();
    (void)KillAllNow(Pidfd()).ok();
  }
}

// Otherwise neither the script nor anyone who looks at it could tell why it stands still.
void Agent::TellOfFullDisk() {
  const bool waits = WaitsForRoom(supervisor_pid_.load());
  if (waits_for_room_ == waits) return;
  waits_for_room_ = waits;
  Cause cause{"disk_room", "there is room on the disk again: the script goes on", "", ""};
  if (waits) {
    cause = {"waiting_disk",
             "waits for disk space: there is no room for what it prints; nothing is lost, and it "
             "goes on by itself once there is",
             "df -h " + ShellQuote(dir_), ""};
  }
  shipper_->Send(NoteFrame{std::move(cause)});
}

void Agent::Watch() {
  auto next_tick = clock_.Monotonic() + Millis(1'000);
  const int supervisor = Pidfd();
  while (supervisor >= 0) {
    ::pollfd fds[2] = {{supervisor, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(fds, 2, WatchTimeout());
    if (fds[0].revents != 0) break;
    if (fds[1].revents != 0) {
      uint64_t drop = 0;
      [[maybe_unused]] auto r = ::read(wake_.get(), &drop, sizeof drop);
    }
    CheckLimits();
    CarryOutStop();
    if (clock_.Monotonic() >= next_tick) {
      next_tick = clock_.Monotonic() + Millis(1'000);
      TellOfFullDisk();
      survival_.Tick(last_cpu_ns_.load(), waits_for_room_.value_or(false));
    }
  }
  // Ours, if we started it; else init's.
  ::waitpid(static_cast<pid_t>(supervisor_pid_.load()), nullptr, WNOHANG);
}

// A stop that the agent itself decides on.
void Agent::StopItself(Cause cause) {
  MutexLock lock(mutex_);
  if (!stop_) stop_ = StopFrame{std::move(cause), plan_.spec.limits.stop_grace.count()};
}

void Agent::CarryOutStop() {
  if (fenced_) {
    (void)KillAllNow(Pidfd()).ok();
    return;
  }
  MutexLock lock(mutex_);
  if (!stop_) return;
  if (std::exchange(hastened_, false) && stop_done_) {
    const auto sooner = clock_.Monotonic() + Millis(stop_->grace_ms);
    if (!kill_at_ || sooner < *kill_at_) kill_at_ = sooner;
    return;
  }
  if (stop_done_) return;
  stop_done_ = true;
  shipper_->RaiseStop(stop_->cause, {clock_.Wall().ms + stop_->grace_ms});
  survival_.Noticed(*stop_);
  if (stop_->grace_ms > 0) kill_at_ = clock_.Monotonic() + Millis(stop_->grace_ms);
  auto status = stop_->grace_ms > 0 ? AskToStop(pidfd_.get()) : KillAllNow(pidfd_.get());
  if (!status) log_.Log(LogLevel::kWarning, "stop", {{"why", status.error().what}});
}

// The script's own message about its end, without secrets. The scrubber holds back a secret that
// the limit cuts in two, so only a text below the limit is complete.
std::string Agent::FailureWords() {
  auto text = FailureText(ml_);
  Scrubber scrubber(patterns_);  // not the gate: an open end must stay away
  std::string out(scrubber.Feed(text));
  if (text.size() < kFailureBytes) out += scrubber.Flush();
  return out;
}

// Ranks here ended because another one was gone. The host of that one knows why it went, and may
// still wait for its own other ranks: it is to be heard first.
void Agent::HearOtherHosts() {
  const auto until = clock_.Monotonic() + Millis(kOtherHostMs) +
                     std::min(Millis(SupervisorPlan().peer_grace_ms), plan_.spec.limits.stop_grace);
  while (!StopGrace() && !fenced_) {
    const auto left = until - clock_.Monotonic();
    if (left.count() <= 0) return;
    ::pollfd wake{wake_.get(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(left.count()));
    uint64_t drop = 0;
    [[maybe_unused]] auto r = ::read(wake_.get(), &drop, sizeof drop);
  }
}

int Agent::Finish() {
  Ending ending;
  ending.plan = &plan_;
  ending.files = files_.get();
  if (auto text = ReadFile(Path(attempt_dir::kExit))) {
    if (auto record = ParseExit(*text)) ending.record = std::move(*record);
  }
  // It ended by itself, so its output found room between two checks.
  if (waits_for_room_ == true && ending.record && !ending.record->killed &&
      ending.record->stop_signal == 0) {
    TellOfFullDisk();
  }
  // Before anything waits for the server: checkpoints beside it do not need it. But the other hosts
  // must hear soon that a rank fell here: they wait for it.
  std::thread keeping;
  const bool fell = HostCount(plan_) > 1 && ending.record && ending.record->fell_by_itself;
  const auto keep = [this, clean = EndedCleanly(ending.record)] { survival_.KeepLast(clean); };
  if (!fenced_ && fell) {
    keeping = std::thread(keep);
  } else if (!fenced_) {
    keep();
  }
  const auto kept = [&keeping] {
    if (keeping.joinable()) keeping.join();
  };
  // What the script logged belongs to an attempt that is still alive.
  if (mlflow_) mlflow_->Drain();
  shipper_->Drain();
  if (fenced_) {
    kept();
    return Leave({});
  }
  // The raw streams may contain secrets; the scrubbed bytes are at the server now.
  (void)RemoveTree(Path(attempt_dir::kLogs)).ok();
  const uint32_t fallen = FirstRank(plan_) + FirstFallen(ending.record);
  ending.stdout_tail = shipper_->Tail(fallen, LogStream::kStdout);
  ending.stderr_tail = shipper_->Tail(fallen, LogStream::kStderr);
  ending.failure_text = FailureWords();
  if (!mounts_) ending.ml = Path(attempt_dir::kMl);
  ending.done_called = shipper_->done_called();
  if (!fell) ending.saved_ms = survival_.saved_ms();
  {
    MutexLock lock(mutex_);
    ending.stop = stop_;
  }
  survival_.FinishWebhooks();
  ending.captured = survival_.KeepCapture();
  auto [exit, cause] = Explain(ending);
  if (fell && !ending.stop && LostAnotherRank(cause)) HearOtherHosts();
  if (exit.log_dropped > 0) shipper_->Send(NoteFrame{CauseOfCutLog(exit)});
  // A script that failed before it could read them has other problems. Of several hosts, the first
  // speaks for all.
  const bool ran = exit.code == 0 || ending.stop;
  const auto unread = ran && plan_.host == 0 ? params_.Find(plan_.spec, ml_) : Unread{};
  if (!unread.names.empty()) {
    shipper_->Send(NoteFrame{UnreadNote(plan_.spec, unread.names, unread.sure)});
  }
  auto ends = ending.record ? EndsOf(*ending.record, FirstRank(plan_)) : std::vector<RankEnd>();
  shipper_->Send(EndedFrame{exit, cause, std::move(ends)});
  kept();
  auto uploaded = StoreOutputs(plan_, dir_, ml_, *files_);
  uploaded.packages = packages_;
  shipper_->Send(std::move(uploaded));
  (void)RemoveAttemptCgroup(cgroup_).ok();
  shipper_->Drain();
  return Leave({});
}

// Reports the end; a cause with a kind means that the set-up failed.
int Agent::Leave(const Cause& cause) {
  if (!cause.kind.empty() && !fenced_) {
    // Stored before it is reported: if the report arrives after our death, it is still true.
    (void)ReplaceFile(Path(attempt_dir::kPrepareFailed), EncodeReport({PrepareFailedFrame{cause}}))
        .ok();
    shipper_->Send(PrepareFailedFrame{cause});
    shipper_->Drain();
  }
  leaving_ = true;
  Wake();
  shipper_->Stop();
  if (commands_.joinable()) commands_.join();
  mlflow_.reset();  // it is not told about a fence any more
  if (auto left = network_.Leave(); !left) {
    log_.Log(LogLevel::kWarning, "network", {{"why", left.error().what}});
  }
  return 0;
}

// What an earlier agent of this attempt reported when it could not prepare it.
std::optional<Cause> Agent::FailedBefore() const {
  const auto kept = ReadFile(Path(attempt_dir::kPrepareFailed));
  if (!kept) return std::nullopt;
  const auto frames = DecodeReport(*kept);
  if (!frames || frames->empty()) return std::nullopt;
  const auto* failed = std::get_if<PrepareFailedFrame>(&frames->front());
  return failed ? std::optional(failed->cause) : std::nullopt;
}

int Agent::Run() {
  const FolderWatch folder(EndWithFolder());
  network_.Join(plan_, Exists(Path(attempt_dir::kHostCount)),
                Exists(Path(attempt_dir::kSupervisorStatus)));
  auto fetched = FetchSecrets(plan_, log_);
  auto kept_out = OwnTokens(plan_, paths_);
  patterns_ = *SecretPatterns::Make(kept_out);
  if (fetched) kept_out.insert(kept_out.end(), fetched->begin(), fetched->end());
  auto patterns = SecretPatterns::Make(kept_out);
  if (patterns) patterns_ = *patterns;
  if (!fetched || !patterns) {
    StartShipping();
    return Leave(CauseOf(std::string(NameOf(CauseKind::kSecretMissing)),
                         fetched ? patterns.error() : fetched.error()));
  }
  secrets_ = std::move(*fetched);
  StartShipping();
  if (auto cause = FailedBefore()) return Leave(*cause);
  if (!Adopt()) {
    if (auto status = Launch(); !status) {
      MutexLock lock(mutex_);
      auto stop = stop_;
      lock.unlock();
      return Leave(stop ? stop->cause : CauseOf(status.error().id, status.error()));
    }
  }
  Watch();
  return Finish();
}

// In place on the server's own machine; everywhere else they travel.
Result<std::unique_ptr<JobFiles>> FilesOf(const HostPlan& plan) {
  const auto& attempt = plan.attempt;
  const auto& paths = plan.paths;
  if (paths.is_server_here()) {
    LocalJobFiles::Options options;
    const auto layout = paths.layout();
    options.blob_dir = layout.blobs();
    options.job_dir = paths.job_dir(attempt.job);
    if (!attempt.resume_job.empty()) options.earlier_dir = layout.job(attempt.resume_job);
    const auto place = PlaceOfCheckpoints(attempt, {"", "", {}, "", options.job_dir});
    if (place.shared) options.shared_dir = place.outside;
    options.attempt = attempt.number;
    return LocalJobFiles::Open(std::move(options));
  }
  RemoteJobFiles::Options options;
  options.server = attempt.server;
  options.pin = attempt.pin;
  options.token = attempt.token;
  options.scratch_dir = paths.dir;
  // As long as the script runs, the shipper asks the same server, and says so.
  options.stranger = [](const Error&) { return true; };
  return RemoteJobFiles::Open(std::move(options));
}

}  // namespace

int RunAgent(const std::string& attempt_dir) {
  ::umask(022);
  UniqueFd lock(::open(JoinPath(attempt_dir, attempt_dir::kAgentLock).c_str(),
                       O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return 0;
  auto text = ReadFile(JoinPath(attempt_dir, attempt_dir::kPlan));
  if (!text) return 1;
  auto plan = DecodeHostPlan(*text);
  if (!plan) return 1;
  // It may have been moved since the plan was written.
  plan->paths.dir = attempt_dir;
  auto ml = HeldFolder::At(JoinPath(attempt_dir, attempt_dir::kMl));
  if (!ml) return 1;
  ::signal(SIGPIPE, SIG_IGN);
  NameThisProcess(kAgentName);
  if (MayTakeLong(plan->attempt)) LeaveStartLane();
  SystemClock clock;
  Logger log(STDERR_FILENO, clock);
  auto files = FilesOf(*plan);
  auto script_line = LineForScript(*plan, log);
  if (!files) {
    log.Log(LogLevel::kError, "the agent does not start", {{"why", files.error().what}});
    return 1;
  }
  return Agent(std::move(*plan), std::move(*ml), std::move(*files), std::move(script_line)).Run();
}

int RunAgentWhenAsked(char* placeholder) {
  const std::string_view name = placeholder;
  (void)OurIsolation();  // known by the time it is needed
  UniqueFd orders(3);
  std::string folder(PATH_MAX, '\0');
  ssize_t length = -1;
  for (::pollfd order{orders.get(), POLLIN, 0}; ::poll(&order, 1, kSpareLookMs) <= 0;) {
    if (!Exists(DirName(std::string(name)))) return 0;
  }
  do {
    length = ::recv(orders.get(), folder.data(), folder.size(), 0);
  } while (length < 0 && errno == EINTR);
  if (length <= 0) {
    orders.reset();
    StartServerAgain(DirName(DirName(std::string(name))));
    return 0;
  }
  folder.resize(static_cast<size_t>(length));
  orders.reset();
  if (folder.size() == name.size()) std::copy(folder.begin(), folder.end(), placeholder);
  const UniqueFd log(::open(JoinPath(folder, attempt_dir::kAgentLog).c_str(),
                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return 1;
  if (::dup2(log.get(), STDOUT_FILENO) < 0 || ::dup2(log.get(), STDERR_FILENO) < 0) return 1;
  return RunAgent(folder);
}

int EndAttempt(const std::string& attempt_dir) {
  auto found = FindSupervisor(JoinPath(attempt_dir, attempt_dir::kSupervisorStatus));
  if (found) {
    if (!KillAllNow(found->pidfd.get())) return 1;
    ::pollfd over{found->pidfd.get(), POLLIN, 0};
    if (::poll(&over, 1, kEndWaitMs) <= 0) return 1;
  }
  // What its agent would have removed, had it lived.
  const auto text = ReadFile(JoinPath(attempt_dir, attempt_dir::kPlan));
  const auto host = text ? DecodeHostPlan(*text) : Fail(text.error());
  if (host && HostCount(host->attempt) > 1) {
    (void)LeaveHosts(host->attempt.attempt, host->attempt.host).ok();
  }
  constexpr std::string_view kSaid = "ended\n";
  return ::write(STDOUT_FILENO, kSaid.data(), kSaid.size()) > 0 ? 0 : 1;
}

}  // namespace athanor
