#include "steer/sim/cluster.h"

#include <algorithm>
#include <utility>

namespace athanor::sim {
namespace {

constexpr Millis kBeat{3'000};
constexpr Millis kAnswerWithin{10'000};

// Whether this host of a gang is the one with the trouble of its attempt.
bool HasTrouble(const ScriptPlan& script, const AttemptPlan& plan) {
  return plan.host == script.trouble_on.value_or(plan.number % plan.spec.resources.nodes);
}

}  // namespace

Cluster::Cluster(World& world, size_t machines)
    : world_(world),
      machines_(machines),
      backend_(machines,
               {[this](const AttemptPlan& plan, size_t machine) { AgentStarts(plan, machine); },
                [this](AttemptId attempt, uint32_t host) { EndAll(attempt, host); },
                {}}) {
  backend_.SetFates([this](FakeBackend::Call call) {
    if (!world_.faults || !world_.dice.Percent(6)) return FakeBackend::Fate::kDone;
    switch (world_.dice.Below(3)) {
      case 0:
        return FakeBackend::Fate::kRequestLost;
      case 1:
        return FakeBackend::Fate::kReplyLost;
      default:
        return call == FakeBackend::Call::kLaunch ? FakeBackend::Fate::kRefused
                                                  : FakeBackend::Fate::kDone;
    }
  });
}

void Cluster::Connect(SimServer& server, std::function<void(const HostAttempt&)> began) {
  server_ = &server;
  began_ = std::move(began);
}

const HostAttempt* Cluster::Find(AttemptId attempt, uint32_t host) const {
  const auto at = attempts_.find({attempt, host});
  return at == attempts_.end() ? nullptr : at->second;
}

std::string Cluster::NameOf(const HostAttempt& a) const {
  return a.plan.spec.name + "/" + std::to_string(a.plan.number) + "." +
         std::to_string(a.plan.host) + "@" + std::to_string(a.machine);
}

void Cluster::OnHost(const HostAttempt& a, Millis delay, std::function<void()> task) {
  world_.executor.After(
      delay, [this, machine = a.machine, life = machines_[a.machine].life, task = std::move(task)] {
        auto& h = machines_[machine];
        if (h.life != life) return;
        if (h.paused) {
          h.frozen.push_back(task);
        } else {
          task();
        }
      });
}

void Cluster::OnAgent(HostAttempt& a, Millis delay, std::function<void(HostAttempt&)> task) {
  OnHost(a, delay, [&a, life = a.agent_life, task = std::move(task)] {
    if (a.agent && a.agent_life == life) task(a);
  });
}

void Cluster::OnScript(HostAttempt& a, Millis delay, std::function<void(HostAttempt&)> task) {
  OnHost(a, delay, [&a, life = a.script_life, task = std::move(task)] {
    if (a.script == HostAttempt::Script::kRunning && a.script_life == life) task(a);
  });
}

void Cluster::AgentStarts(const AttemptPlan& plan, size_t machine) {
  auto& a = *[&] {
    auto& slot = attempts_[{plan.attempt, plan.host}];
    if (!slot) {
      order_.push_back(std::make_unique<HostAttempt>());
      slot = order_.back().get();
      slot->plan = plan;
      slot->machine = machine;
      slot->first_agent = world_.now();
    }
    return slot;
  }();
  world_.Note("agent starts " + NameOf(a));
  a.agent = true;
  ++a.agent_life;
  a.left.reset();
  a.finishing = a.greeted = a.preparing = false;
  a.posting = 0;
  a.failures = 0;
  a.stop.reset();
  a.controls.clear();
  a.last_taken = world_.now();
  a.preparing = a.script == HostAttempt::Script::kNone && !a.prepare_failed;
  began_(a);
  OnAgent(a, world_.dice.Between(5, 50), [this](HostAttempt& up) {
    if (up.prepare_failed) {
      PrepareFails(up, *up.prepare_failed);
    } else if (up.script == HostAttempt::Script::kNone) {
      OnAgent(up, world_.dice.Between(50, 4'000), [this](HostAttempt& ready) { Prepared(ready); });
    } else {
      Say(up, StartedFrame{0, {}, 1});
      if (up.script != HostAttempt::Script::kRunning) Finish(up);
    }
    Beat(up);
  });
}

// A stop that came during preparation is carried out here, because preparation is cancelled.
void Cluster::Prepared(HostAttempt& a) {
  if (!a.preparing) return;
  if (a.stop) return PrepareFails(a, a.stop->cause);
  if (PlanOf(a.plan.spec.name).prepare_fails && HasTrouble(PlanOf(a.plan.spec.name), a.plan)) {
    return PrepareFails(a, {"install_failed", "no such package", "", ""});
  }
  ScriptStarts(a);
}

void Cluster::PrepareFails(HostAttempt& a, const Cause& cause) {
  a.preparing = false;
  a.prepare_failed = cause;
  FinalWord(a, PrepareFailedFrame{cause});
}

void Cluster::ScriptStarts(HostAttempt& a) {
  const auto& plan = PlanOf(a.plan.spec.name);
  if (const auto at = saved_.find(a.plan.spec.name); at != saved_.end()) {
    a.resumed_ms = at->second.second;
    Say(a, ResumedFrame{at->second.first, a.resumed_ms});
  }
  world_.Note("script starts " + NameOf(a));
  a.script = HostAttempt::Script::kRunning;
  a.preparing = false;
  a.started = world_.now();
  ++a.script_life;
  began_(a);
  Say(a, StartedFrame{Held(a), {}, 1});
  if (plan.checkpoint_every.count() > 0 && a.plan.host == 0) {
    OnScript(a, plan.checkpoint_every, [this](HostAttempt& at) { ScriptSaves(at); });
  }
  const Millis left{std::max<int64_t>(plan.work.count() - a.resumed_ms, 100)};
  if (plan.rule && plan.failures.empty() && HasTrouble(plan, a.plan)) {
    OnScript(a, left / 2, [this](HostAttempt& at) {
      const auto& known = PlanOf(at.plan.spec.name);
      if (!at.agent) return;
      Say(at, FiringFrame{*known.rule});
      if (!known.rule_stop.kind.empty()) StopItself(at, known.rule_stop);
    });
  }
  auto& used = failed_[a.plan.spec.name];
  if (used < plan.failures.size() && HasTrouble(plan, a.plan)) {
    OnScript(a, left / 3 + Millis(50), [this](HostAttempt& at) {
      const auto& known = PlanOf(at.plan.spec.name);
      ScriptEnds(at, known.failures[failed_[at.plan.spec.name]++ % known.failures.size()], 1);
    });
  }
  OnScript(a, left, [this](HostAttempt& at) {
    if (at.notice && !at.exit.done_called) return;  // it heeds the notice instead
    ScriptEnds(at, {"completed", "done", "", ""}, 0);
  });
}

int64_t Cluster::WorkDone(const HostAttempt& a) {
  return a.resumed_ms + (world_.now() - *a.started).count();
}

void Cluster::ScriptSaves(HostAttempt& a) {
  const auto& plan = PlanOf(a.plan.spec.name);
  CheckpointInfo info;
  info.id = std::to_string(a.plan.number) + "-" + std::to_string(++a.saves);
  info.attempt = a.plan.number;
  info.step = WorkDone(a);
  info.held_ms = Held(a);
  saved_[a.plan.spec.name] = {info.id, *info.step};
  // An agent that is away when it happens never reports it; the next checkpoint is reported.
  if (a.agent) Say(a, CheckpointFrame{info, {}});
  OnScript(a, plan.checkpoint_every, [this](HostAttempt& at) { ScriptSaves(at); });
}

void Cluster::ScriptEnds(HostAttempt& a, const Cause& cause, int code) {
  world_.Note("script ends " + NameOf(a) + " " + cause.kind);
  a.script = HostAttempt::Script::kOver;
  ++a.script_life;
  a.exit.code = code;
  a.exit.oom_killed = cause.Is(CauseKind::kOutOfMemory);
  if (a.notice) {
    a.exit.notice_ms = (world_.now() - *a.notice).count();
    a.exit.saved_ms = a.saved_ms;
  }
  a.cause = cause;
  if (a.agent) OnAgent(a, Millis(1), [this](HostAttempt& at) { Finish(at); });
}

// SIGTERM reaches the script: once, whichever agent brings it.
void Cluster::Notice(HostAttempt& a) {
  if (a.script != HostAttempt::Script::kRunning || a.notice) return;
  const auto& plan = PlanOf(a.plan.spec.name);
  world_.Note("notice " + NameOf(a) + " " + a.stop->cause.kind);
  a.notice = world_.now();
  const Millis grace{a.stop->grace_ms};
  const bool heeds = !plan.ignores_notice && grace.count() > 0;
  const Millis end =
      heeds ? world_.dice.Between(1, std::max<int64_t>(grace.count() / 2, 2)) : grace;
  a.exit.done_called = heeds && plan.says_done;
  const bool saves = heeds && plan.checkpoint_every.count() > 0 && a.plan.host == 0;
  OnScript(a, end, [this, saves, cause = a.stop->cause](HostAttempt& at) {
    if (saves) {
      at.saved_ms = (world_.now() - *at.notice).count();
      ScriptSaves(at);
    }
    ScriptEnds(at, at.exit.done_called ? Cause{"completed", "done", "", ""} : cause,
               at.exit.done_called ? 0 : 143);
  });
}

void Cluster::StopItself(HostAttempt& a, const Cause& cause) {
  if (a.stop) return;
  a.stop = StopFrame{cause, a.plan.spec.limits.stop_grace.count()};
  Notice(a);
}

void Cluster::Beat(HostAttempt& a) {
  const auto& limits = a.plan.spec.limits;
  if (limits.lost_after.count() > 0 && world_.now() - a.last_taken > limits.lost_after) {
    StopItself(a, {"server_silent", "the server did not answer", "", ""});
  }
  if (limits.max_runtime.count() > 0 && a.started &&
      world_.now() - *a.started >= limits.max_runtime) {
    StopItself(a, {"time_limit", "ran longer than its limit", "", ""});
  }
  Turn(a);
  OnAgent(a, kBeat, [this](HostAttempt& at) { Beat(at); });
}

void Cluster::Say(HostAttempt& a, ReportFrame frame) {
  a.controls.push_back(std::move(frame));
  OnAgent(a, Millis(1), [this](HostAttempt& at) { Turn(at); });
}

void Cluster::FinalWord(HostAttempt& a, ReportFrame frame) {
  a.finishing = true;
  if (!a.final_word_held) a.final_word_held = Held(a);
  Say(a, std::move(frame));
}

void Cluster::Finish(HostAttempt& a) {
  if (a.finishing) return;
  a.preparing = false;
  if (a.plan.spec.priority > 0) Say(a, NoteFrame{{"log_capped", "the log was cut", "", ""}});
  if (a.script == HostAttempt::Script::kLost) {
    Say(a, EndedFrame{{}, {"agent_lost", "agent and script are gone", "", ""}});
  } else {
    const auto rank = FirstRank(a.plan);
    Say(a, EndedFrame{a.exit, a.cause, {{rank, a.exit.code, a.exit.signal, 0}}});
  }
  OnAgent(a, world_.dice.Between(1, 2'000), [this](HostAttempt& at) {
    UploadedFrame uploaded;
    if (at.plan.host % 2 == 0) {
      uploaded.outputs.push_back({"model.tar.gz", std::string(64, 'a'), 10, 1});
    }
    FinalWord(at, uploaded);
  });
}

// One batch at a time; what is not acknowledged is sent again, with a fresh sum.
void Cluster::Turn(HostAttempt& a) {
  if (a.posting != 0) return;
  std::vector<ReportFrame> frames;
  UsageFrame usage;
  usage.held_ms = Held(a);
  frames.emplace_back(usage);
  if (!a.greeted) frames.emplace_back(HelloFrame{a.plan.attempt, a.agent_life, a.plan.host});
  for (const auto& frame : a.controls) frames.push_back(frame);
  const auto request = a.posting = next_request_++;
  Send(a, frames, a.controls.size());
  OnAgent(a, kAnswerWithin, [this, request](HostAttempt& at) {
    if (at.posting != request) return;
    at.posting = 0;
    at.failures = std::min(at.failures + 1, 6);
    OnAgent(at, world_.dice.Between(50, 100 << at.failures),
            [this](HostAttempt& again) { Turn(again); });
  });
}

// A request may be lost, late or duplicated; so may its answer. Copies of a dead agent's requests
// still arrive.
void Cluster::Send(HostAttempt& a, const std::vector<ReportFrame>& frames, size_t controls) {
  if (machines_[a.machine].cut) return;
  const int copies = world_.Loses() ? 0 : world_.faults && world_.dice.Percent(5) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    const auto delay = world_.Delay() * (copy + 1);
    world_.executor.After(
        delay, [this, &a, frames, controls, request = a.posting, life = a.agent_life] {
          if (machines_[a.machine].cut || !server_->up()) return;
          server_->Report(
              a.plan.attempt, a.plan.host, frames,
              [this, &a, controls, request, life](const Reports::Answer& reply) {
                if (world_.Loses()) return;
                world_.executor.After(world_.Delay(), [this, &a, controls, request, life, reply] {
                  if (machines_[a.machine].cut || a.agent_life != life) return;
                  OnAgent(a, Millis(0), [this, controls, request, reply](HostAttempt& at) {
                    Answered(at, request, controls, reply);
                  });
                });
              });
        });
  }
}

void Cluster::Answered(HostAttempt& a, uint64_t request, size_t controls,
                       const Reports::Answer& reply) {
  if (reply.fenced) {
    world_.Note("fenced " + NameOf(a));
    if (a.script == HostAttempt::Script::kRunning) {
      a.script = HostAttempt::Script::kOver;
      ++a.script_life;
    }
    return Leave(a);
  }
  for (const auto& frame : reply.frames) {
    const auto* stop = std::get_if<StopFrame>(&frame);
    if (!stop || a.stop) continue;
    a.stop = *stop;
    if (a.preparing) Prepared(a);
    Notice(a);
  }
  if (a.posting != request) return;  // the answer to a copy that was given up
  a.posting = 0;
  a.failures = 0;
  a.greeted = true;
  a.last_taken = world_.now();
  a.controls.erase(a.controls.begin(), a.controls.begin() + static_cast<long>(controls));
  if (!a.controls.empty()) return Turn(a);
  if (!a.finishing) return;
  a.final_word_taken = true;
  Leave(a);
}

void Cluster::Leave(HostAttempt& a) {
  world_.Note("agent leaves " + NameOf(a));
  a.agent = false;
  a.preparing = false;
  a.left = world_.now();
  backend_.AgentEnded(a.plan.attempt, a.plan.host);
}

void Cluster::EndAll(AttemptId attempt, uint32_t host) {
  const auto at = attempts_.find({attempt, host});
  if (at == attempts_.end()) return;
  auto& a = *at->second;
  world_.Note("released " + NameOf(a));
  if (a.script == HostAttempt::Script::kRunning) a.script = HostAttempt::Script::kOver;
  ++a.script_life;
  if (a.agent || !a.left) a.left = world_.now();
  a.agent = false;
  a.preparing = false;
}

void Cluster::Nudge(AttemptId attempt) {
  for (auto at = attempts_.lower_bound({attempt, 0}); at != attempts_.end(); ++at) {
    if (at->first.first != attempt) break;
    if (!at->second->agent || world_.Loses()) continue;
    world_.executor.After(world_.Delay(), [this, &a = *at->second] {
      if (!machines_[a.machine].cut) OnAgent(a, Millis(0), [this](HostAttempt& up) { Turn(up); });
    });
  }
}

void Cluster::ReachAnew(size_t machine) {
  backend_.Reach(machine, !machines_[machine].cut && !machines_[machine].paused);
}

void Cluster::Crash(size_t machine) {
  auto& h = machines_[machine];
  if (!h.up || h.cut || h.paused) return;
  world_.Note("machine " + std::to_string(machine) + " crashes");
  h.up = false;
  ++h.life;
  h.frozen.clear();
  for (auto& a : order_) {
    if (a->machine != machine) continue;
    if (a->script == HostAttempt::Script::kRunning) a->script = HostAttempt::Script::kLost;
    if (a->agent) a->left = world_.now();
    a->agent = false;
    a->preparing = false;
  }
  backend_.CrashMachine(machine);
}

void Cluster::Restore(size_t machine) {
  if (std::exchange(machines_[machine].up, true)) return;
  world_.Note("machine " + std::to_string(machine) + " is back");
  backend_.RestoreMachine(machine);
}

void Cluster::CutOff(size_t machine, bool cut) {
  if (machines_[machine].cut == cut || !machines_[machine].up) return;
  world_.Note("machine " + std::to_string(machine) + (cut ? " is cut off" : " is reached again"));
  machines_[machine].cut = cut;
  ReachAnew(machine);
}

void Cluster::Pause(size_t machine, bool paused) {
  auto& h = machines_[machine];
  if (h.paused == paused || !h.up) return;
  world_.Note("machine " + std::to_string(machine) + (paused ? " pauses" : " goes on"));
  h.paused = paused;
  ReachAnew(machine);
  if (paused) return;
  for (auto& task : std::exchange(h.frozen, {})) {
    world_.executor.Post([this, machine, life = h.life, task] {
      if (machines_[machine].life == life) task();
    });
  }
}

void Cluster::KillSomeAgent() {
  std::vector<HostAttempt*> alive;
  for (auto& a : order_) {
    if (a->agent && !machines_[a->machine].paused) alive.push_back(a.get());
  }
  if (alive.empty()) return;
  const auto& a = *alive[world_.dice.Below(alive.size())];
  KillAgent(a.plan.attempt, a.plan.host);
}

void Cluster::KillAgent(AttemptId attempt, uint32_t host) {
  const auto at = attempts_.find({attempt, host});
  if (at == attempts_.end() || !at->second->agent) return;
  auto& a = *at->second;
  world_.Note("agent dies " + NameOf(a));
  a.agent = false;
  a.preparing = false;
  a.left = world_.now();
  backend_.AgentEnded(a.plan.attempt, a.plan.host);
}

void Cluster::HealAll() {
  for (size_t machine = 0; machine < machines_.size(); ++machine) {
    Restore(machine);
    CutOff(machine, false);
    Pause(machine, false);
  }
}

}  // namespace athanor::sim
