// Survival is how the agent helps a job survive the loss of its machine: it stores the script's
// checkpoints, advises how often to make them, tells the script about a stop by file and page,
// watches rules and hangs, and reports afterwards whether the script saved in time.
//
// Threads: Start, Tick and the calls after the script's end belong to the agent's main thread;
// the hooks come from the shipper's and, for MLflow, from its proxy's.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/exec/clock.h"
#include "base/io/held_folder.h"
#include "base/log.h"
#include "link/job_files.h"
#include "link/plan.h"
#include "link/spool.h"
#include "link/wire.h"
#include "run/agent/publish.h"
#include "run/checkpoint/checkpoint_sync.h"
#include "run/rules/watcher.h"
#include "run/rules/webhook.h"
#include "run/ship/exit_gate.h"
#include "run/ship/shipper.h"

namespace athanor {

class Survival {
 public:
  struct Options {
    const AttemptPlan& plan;
    const HostPaths& paths;
    JobFiles& files;
    HeldFolder ml;  // the contract's tree
    const Clock& clock;
    Logger& log;
    std::function<int64_t()> held_ms;
    std::function<void(Cause)> stop;  // ends the script with its grace
  };
  explicit Survival(Options options);
  ~Survival();

  // For Shipper::Options; then the shipper itself, before it starts.
  void HookInto(Shipper::Options& options);
  void Use(Shipper& shipper) { shipper_ = &shipper; }
  // What the script logs with MLflow; from any thread.
  void OnPoints(const PointBatch& batch) { watcher_.OnPoints(batch); }
  // The script runs (or is found running) under this supervisor.
  void Start(const HeldFolder& checkpoint_dir, std::optional<int64_t> resumed_step,
             int64_t supervisor_pid);
  // About once per second. `held_up`: the script waits for us and is not responsible.
  void Tick(uint64_t cpu_ns, bool held_up);
  // The notice was just given: writes the file for programs that are not Python.
  void Noticed(const StopFrame& stop);

  // After the script ended. `clean`: none of its writes was cut short.
  void KeepLast(bool clean);
  // From the notice to the newest change of a checkpoint; -1: none, or no notice.
  int64_t saved_ms() const;
  // Gives pending messages of rules a last moment.
  void FinishWebhooks();
  // Moves the captured steps to a place that outlives the attempt. Returns whether there was a
  // step.
  bool KeepCapture();

 private:
  void Kept(const CheckpointInfo& checkpoint);
  void Publish(const std::string& checkpoint);
  void Hung(const Hang& hang);
  void Tell(const Firing& firing);
  std::string Stacks() const;
  std::map<uint32_t, int> MainProcesses() const;

  Options options_;
  ExitGate gate_;  // set by HookInto
  Watcher watcher_;
  Shipper* shipper_ = nullptr;
  std::once_flag webhooks_made_;  // firings come on two threads
  std::unique_ptr<Webhooks> webhooks_;
  int64_t supervisor_pid_ = 0;
  std::optional<WallTime> noticed_;
  // Of the sync's thread while it runs.
  std::unique_ptr<CheckpointPublisher> publisher_;
  std::string unpublished_;  // a checkpoint that publisher_ had begun with when it was stopped
  std::unique_ptr<CheckpointSync> sync_;
  std::atomic<CheckpointSync*> open_sync_{nullptr};  // sync_, for the shipper's thread
};

}  // namespace athanor
