// The fake cluster: machines that crash, pause and are cut off, and on them agents and scripts
// that behave as run/agent/agent does towards the server: reports in order, at least once, each
// batch with the held time first; an agent that died is followed by one that finds the script
// again; silence of the server changes nothing unless the job asked for it.
//
// Of a gang, each host has an agent and a script of its own; one of them fails, the others then run
// on until they are stopped or done.
//
// What the machines know is the truth with which the checker compares the records.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/fake_backend.h"
#include "link/wire.h"
#include "steer/sim/server.h"
#include "steer/sim/world.h"

namespace athanor::sim {

// What the script of a job does, in every attempt.
struct ScriptPlan {
  Millis work{30'000};
  Millis checkpoint_every{0};   // 0: it saves nothing
  std::vector<Cause> failures;  // how its first attempts end, when they get that far
  std::optional<Firing> rule;   // fires half-way, with this action
  Cause rule_stop;              // what the agent stops itself with then; kind empty: continues
  bool prepare_fails = false;
  bool ignores_notice = false;
  bool says_done = false;  // athanor.done() on a notice
  // The host of a gang that fails; none: another one in each attempt.
  std::optional<uint32_t> trouble_on;
};

// A host of an attempt, as its machine sees it.
struct HostAttempt {
  enum class Script { kNone, kRunning, kOver, kLost };  // kLost: gone without an exit record

  AttemptPlan plan;
  size_t machine = 0;
  Script script = Script::kNone;
  Millis first_agent{0};                   // the held time counts from here
  std::optional<Millis> left;              // its last agent left, was ended, or died with the host
  std::optional<int64_t> final_word_held;  // when its last report was first sent
  bool final_word_taken = false;           // it was acknowledged
  ExitInfo exit;
  Cause cause;
  std::optional<Millis> started;
  int64_t resumed_ms = 0;  // work that an earlier attempt had saved
  std::optional<Millis> notice;
  int64_t saved_ms = -1;
  uint32_t saves = 0;
  std::optional<Cause> prepare_failed;  // stored before it is reported, perhaps twice
  uint32_t script_life = 0;             // rises when the script's timers become void

  bool agent = false;
  uint32_t agent_life = 0;
  bool preparing = false;
  bool finishing = false;
  bool greeted = false;
  uint64_t posting = 0;  // request on its way; 0: none
  int failures = 0;
  Millis last_taken{0};
  std::optional<StopFrame> stop;
  std::deque<ReportFrame> controls;

  bool occupies() const { return script == Script::kRunning || (agent && preparing); }
};

class Cluster {
 public:
  Cluster(World& world, size_t machines);
  // Before anything runs. `began` is called for every agent and every script that starts.
  void Connect(SimServer& server, std::function<void(const HostAttempt&)> began);

  FakeBackend& backend() { return backend_; }
  ScriptPlan& PlanOf(const std::string& job_name) { return plans_[job_name]; }
  // In the order they were launched.
  const std::vector<std::unique_ptr<HostAttempt>>& attempts() const { return order_; }
  const HostAttempt* Find(AttemptId attempt, uint32_t host) const;

  void Crash(size_t machine);
  void Restore(size_t machine);
  void CutOff(size_t machine, bool cut);
  void Pause(size_t machine, bool paused);
  void KillSomeAgent();
  void KillAgent(AttemptId attempt, uint32_t host);
  void HealAll();
  // The server has news for this attempt: its agents' long polls return.
  void Nudge(AttemptId attempt);

 private:
  struct Machine {
    bool up = true;
    bool cut = false;
    bool paused = false;
    uint32_t life = 0;
    std::vector<std::function<void()>> frozen;
  };

  // Runs on the host's machine: later while it is paused, never once it crashed.
  void OnHost(const HostAttempt& a, Millis delay, std::function<void()> task);
  void OnAgent(HostAttempt& a, Millis delay, std::function<void(HostAttempt&)> task);
  void OnScript(HostAttempt& a, Millis delay, std::function<void(HostAttempt&)> task);
  void ReachAnew(size_t machine);

  void AgentStarts(const AttemptPlan& plan, size_t machine);
  void EndAll(AttemptId attempt, uint32_t host);
  void Prepared(HostAttempt& a);
  void PrepareFails(HostAttempt& a, const Cause& cause);
  void ScriptStarts(HostAttempt& a);
  void ScriptSaves(HostAttempt& a);
  void ScriptEnds(HostAttempt& a, const Cause& cause, int code);
  void Notice(HostAttempt& a);
  void StopItself(HostAttempt& a, const Cause& cause);
  void Beat(HostAttempt& a);
  void Say(HostAttempt& a, ReportFrame frame);
  void FinalWord(HostAttempt& a, ReportFrame frame);
  void Turn(HostAttempt& a);
  void Send(HostAttempt& a, const std::vector<ReportFrame>& frames, size_t controls);
  void Answered(HostAttempt& a, uint64_t request, size_t controls, const Reports::Answer& reply);
  void Finish(HostAttempt& a);
  void Leave(HostAttempt& a);
  int64_t Held(const HostAttempt& a) { return (world_.now() - a.first_agent).count(); }
  int64_t WorkDone(const HostAttempt& a);
  std::string NameOf(const HostAttempt& a) const;

  World& world_;
  SimServer* server_ = nullptr;
  std::function<void(const HostAttempt&)> began_;
  std::vector<Machine> machines_;
  std::map<std::string, ScriptPlan> plans_;
  std::map<std::string, std::pair<std::string, int64_t>> saved_;  // by job: checkpoint, work in it
  std::map<std::string, size_t> failed_;  // by job: failures of its plan used up
  std::vector<std::unique_ptr<HostAttempt>> order_;
  std::map<std::pair<AttemptId, uint32_t>, HostAttempt*> attempts_;
  uint64_t next_request_ = 1;
  FakeBackend backend_;
};

}  // namespace athanor::sim
