#include "run/agent/survival.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "link/attempt_dir.h"
#include "link/job_dir.h"
#include "run/agent/captures.h"
#include "run/checkpoint/interval.h"
#include "run/contract/contract.h"
#include "run/hang/stacks.h"
#include "run/supervisor/process_tree.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {
namespace {

constexpr Millis kStacksLimit{5'000};
constexpr Millis kWebhookPatience{10'000};  // once the script has ended
constexpr Millis kLastNotes{2'000};         // a server that hangs does not hold the last save back
constexpr size_t kStacksText = 48u << 10;
// Of a checkpoint, to a server elsewhere: one is read, one travels, one is written there.
constexpr size_t kPartsAtOnce = 3;

}  // namespace

Survival::Survival(Options options)
    : options_(std::move(options)),
      watcher_(options_.plan, options_.clock,
               {[this](const Firing& firing) {
                  shipper_->Send(FiringFrame{firing});
                  if (firing.action == "webhook") Tell(firing);
                },
                [this](const Cause& cause) {
                  shipper_->AskForCapture();  // before the notice, with which it is written
                  options_.stop(cause);
                },
                [this](const Hang& hang) { Hung(hang); }}) {}

Survival::~Survival() = default;

void Survival::Tell(const Firing& firing) {
  for (const auto& rule : options_.plan.spec.rules) {
    if (rule.name != firing.rule || rule.action != "webhook") continue;
    std::call_once(webhooks_made_, [this] {
      Webhooks::Options options;
      options.allow_private = options_.plan.webhooks_private;
      options.failed = [this](const std::string& host, const Error& error) {
        shipper_->Send(
            NoteFrame{{"webhook", "the webhook to " + host + " was not delivered: " + error.what,
                       error.hint, error.why}});
      };
      webhooks_ = std::make_unique<Webhooks>(std::move(options));
    });
    auto body = WebhookBody(options_.plan, firing);
    (void)gate_.ScrubJson(body);
    return webhooks_->Post(rule.url, std::move(body));
  }
}

void Survival::FinishWebhooks() {
  if (webhooks_ && !webhooks_->Finish(kWebhookPatience)) {
    shipper_->Send(
        NoteFrame{{"webhook", "a webhook was still under way when the job ended", "", ""}});
  }
}

void Survival::HookInto(Shipper::Options& options) {
  gate_ = ExitGate(options.secrets);
  options.on_points = [this](const PointBatch& batch) { watcher_.OnPoints(batch); };
  options.on_output = [this](uint64_t bytes) { watcher_.OnOutput(bytes); };
  options.on_checkpoint = [this](const SpoolCheckpoint& saved) {
    if (auto* sync = open_sync_.load()) {
      sync->NoteSave({saved.step, std::max<int64_t>(saved.save_ns, 0) / 1'000'000,
                      WallTime{saved.wall_ns / 1'000'000}});
    }
  };
}

void Survival::Start(const HeldFolder& checkpoint_dir, std::optional<int64_t> resumed_step,
                     int64_t supervisor_pid) {
  auto& shipper = *shipper_;
  supervisor_pid_ = supervisor_pid;
  const auto& plan = options_.plan;
  if (plan.spec.checkpoints.every.count() > 0) {
    shipper.AdviseCheckpoints(plan.spec.checkpoints.every);
  }
  // A job has one series of checkpoints, which its first host stores.
  if (plan.host > 0) return;
  CheckpointSyncOptions sync;
  sync.dir = checkpoint_dir;
  sync.start_step = resumed_step;
  sync.spec = plan.spec.checkpoints;
  sync.attempt = plan.number;
  sync.pids = [pid = static_cast<int>(supervisor_pid)] {
    std::vector<int> pids;
    for (const auto& process : DescendantsOf(ListProcesses(), pid)) pids.push_back(process.pid);
    return pids;
  };
  if (!options_.paths.is_server_here()) sync.parts_at_once = kPartsAtOnce;
  sync.running = [pid = static_cast<int>(supervisor_pid)] { return ChildrenLive(pid); };
  sync.last_step = [this] { return watcher_.last_step(); };
  sync.held_ms = options_.held_ms;
  if (sync.spec.keep_best > 0) {
    sync.value_of = [this](int64_t step) { return watcher_.ValueAt(step); };
  }
  sync.committed = [this](const CheckpointInfo& checkpoint) { Kept(checkpoint); };
  sync.log = [this](const std::string& text) {
    options_.log.Log(LogLevel::kWarning, "checkpoints", {{"why", text}});
  };
  sync.restless = [this](const std::string& name, Millis lasted) {
    shipper_->Send(NoteFrame{
        {"checkpoint",
         "no checkpoint could be kept for " + HumanDuration(lasted) + ": " + Printable(name) +
             " is written so often that it never comes to rest, so nobody knows when it is whole",
         "athanor.checkpoint(step, save_fn) in the script says when a save is whole; or save "
         "less often, or write to a name that ends in .tmp and rename it",
         ""}});
  };
  // The script runs already: nobody waits for a server that is away.
  sync.begin_at_once = options_.paths.is_server_here();
  auto opened = CheckpointSync::Open(std::move(sync), options_.files, options_.clock);
  if (!opened) {
    shipper.Send(NoteFrame{{"checkpoint", "checkpoints are not kept: " + opened.error().what,
                            opened.error().hint, opened.error().why}});
    return;
  }
  if (!plan.spec.checkpoints.uri.empty())
    publisher_ = std::make_unique<CheckpointPublisher>(plan, options_.paths.dir);
  sync_ = std::move(*opened);
  open_sync_ = sync_.get();
  sync_->Start();
}

void Survival::Tick(uint64_t cpu_ns, bool held_up) { watcher_.Tick(cpu_ns, held_up); }

void Survival::Kept(const CheckpointInfo& checkpoint) {
  const auto& plan = options_.plan;
  const int64_t cost = sync_ ? sync_->save_cost_ms() : checkpoint.save_ms;
  auto advice = AdviseInterval(cost, plan.mtbf_ms, plan.mtbf_source);
  if (plan.spec.checkpoints.every.count() > 0) {
    advice.every_ms = plan.spec.checkpoints.every.count();
    advice.source += (advice.source.empty() ? "" : "; ") + std::string("set by checkpoints.every");
  }
  shipper_->AdviseCheckpoints(Millis(advice.every_ms));
  shipper_->Send(CheckpointFrame{checkpoint, advice});
  if (publisher_) Publish(checkpoint.id);
}

void Survival::Publish(const std::string& checkpoint) {
  unpublished_.clear();
  auto status = publisher_->Publish(sync_->files(), checkpoint);
  if (status) return;
  if (status.error().code == ErrorCode::kCancelled) {
    unpublished_ = checkpoint;  // for KeepLast, which stopped it
    return;
  }
  shipper_->Send(NoteFrame{{"checkpoint",
                            "checkpoint " + checkpoint + " was not put to " +
                                options_.plan.spec.checkpoints.uri + ": " + status.error().what,
                            status.error().hint, status.error().why}});
}

void Survival::Noticed(const StopFrame& stop) {
  noticed_ = options_.clock.Wall();
  Json notice = {{"cause", stop.cause.kind}, {"deadline_unix_ms", noticed_->ms + stop.grace_ms}};
  const auto own = (options_.ml / kOwnFolder).Open();
  const Status written =
      own ? ReplaceFile(fmt::format("/proc/self/fd/{}/{}", own->get(), kNoticeName),
                        DumpJson(notice), 0644)
          : Status(Fail(own.error()));
  if (!written) {
    options_.log.Log(LogLevel::kWarning, "notice file", {{"why", written.error().what}});
  }
}

// Of the ranks that still run, by their number on this host; empty if it is not known.
std::map<uint32_t, int> Survival::MainProcesses() const {
  std::map<uint32_t, int> pids;
  const auto text = ReadFile(JoinPath(options_.paths.dir, attempt_dir::kStarted));
  const auto started = text ? ParseStarted(*text) : Fail(text.error());
  if (!started) return pids;
  for (uint32_t local = 0; local < started->ranks.size(); ++local) {
    ProcessInfo info;
    const auto pid = static_cast<int>(started->ranks[local].outer_pid);
    if (pid > 0 && ReadProcess("/proc", pid, &info) && info.ppid == supervisor_pid_) {
      pids[local] = pid;
    }
  }
  return pids;
}

std::string Survival::Stacks() const {
  const auto own = (options_.ml / kOwnFolder).Open();
  if (!own) return own.error().what + "\n";
  const auto all = ListProcesses();
  std::vector<RankProcesses> ranks;
  const auto add = [&](uint32_t local, int pid) {
    const auto file = fmt::format("/proc/self/fd/{}/{}", own->get(), StacksName(local));
    ranks.push_back(ProcessesOfRank(all, Rank{FirstRank(options_.plan) + local}, pid, file));
  };
  for (const auto& [local, pid] : MainProcesses()) add(local, pid);
  for (auto at = all.begin(); ranks.empty() && at != all.end(); ++at) {
    if (at->ppid == supervisor_pid_) add(0, at->pid);
  }
  const auto stacks = TakeStacks(ranks, kStacksLimit);
  std::string text;
  if (auto odd = OddRank(stacks)) text += odd->Text() + "\n";
  for (const auto& rank : stacks) text += rank.Text(kStacksText);
  return text;
}

void Survival::Hung(const Hang& hang) {
  const auto& plan = options_.plan;
  Cause cause{"hung", hang.Text(), "ath logs " + ShellQuote(plan.spec.name) + " --tail 20",
              Stacks()};
  shipper_->AskForCapture();
  const auto& action = plan.spec.limits.hang_action;
  if (action == "note") {
    shipper_->Send(NoteFrame{cause});
  } else {
    options_.stop(cause);
  }
}

void Survival::KeepLast(bool clean) {
  if (!sync_) return;
  shipper_->CatchUp(kLastNotes);  // a save that was reported just before the end
  auto kept = sync_->FinalSync(clean);
  if (!kept) {
    shipper_->Send(
        NoteFrame{{"checkpoint", "the last checkpoint was not kept: " + kept.error().what,
                   kept.error().hint, kept.error().why}});
  }
  if (!unpublished_.empty()) Publish(std::exchange(unpublished_, {}));
}

int64_t Survival::saved_ms() const {
  if (!sync_ || !noticed_) return -1;
  const auto last = sync_->last_write();
  if (!last || last->wall.ms < noticed_->ms) return -1;
  return last->wall.ms - noticed_->ms;
}

bool Survival::KeepCapture() {
  const auto own = (options_.ml / kOwnFolder).Open();
  struct stat info {};
  if (!own || ::fstatat(own->get(), kCaptureName, &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  std::string name = job_dir::kCapture;
  if (options_.plan.host > 0) name += "." + HostName(options_.plan);
  Result<bool> kept = Fail(ErrorCode::kInvalid, "the script put something else in its place");
  if (S_ISDIR(info.st_mode) && options_.paths.is_server_here()) {
    kept = MoveCapture(own->get(), kCaptureName,
                       JoinPath(options_.paths.job_dir(options_.plan.job), name));
  } else if (S_ISDIR(info.st_mode)) {
    kept = SendCapture(options_.files, own->get(), kCaptureName, name);
  }
  if (kept) return *kept;
  options_.log.Log(LogLevel::kWarning, "capture not kept",
                   {{"to", name}, {"why", kept.error().what}});
  return false;
}

}  // namespace athanor
