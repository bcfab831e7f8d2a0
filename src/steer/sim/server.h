// SimServer is a server as agents and users see it: the real Engine on a real JobStore, a small
// version of the door (what door/agents/agent_routes does with a report), and lives: it may be
// killed at any moment, and the next life has only what was committed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "launch/backend.h"
#include "link/wire.h"
#include "record/db/database.h"
#include "record/db/fault_vfs.h"
#include "record/jobs/job_store.h"
#include "steer/engine.h"
#include "steer/sim/world.h"

namespace athanor::sim {

class SimServer {
 public:
  // What the checker needs to know.
  struct Watch {
    std::function<void(const JobRecord&, const std::vector<StoredEvent>&)> durable;
    std::function<void(JobId, AttemptId, int64_t held_ms)> usage_taken;
    std::function<void()> came_up;
  };
  struct Options {
    std::string dir;
    Inventory inventory;
    bool power_cuts =
        false;  // the disk may fail in the midst of a commit, and lose what was not synced
  };
  SimServer(World& world, Backend& backend, Options options, Watch watch);
  ~SimServer();

  void Start();
  void Crash();             // kill -9
  void FailDiskAndCrash();  // with power_cuts: the next commits break half-way
  void StopInOrder();
  bool up() const { return life_ != nullptr; }
  int lives() const { return lives_; }
  Engine& engine() { return *life_->engine; }
  const JobStore& store() const { return *life_->jobs; }

  struct Reply {
    bool fenced = false;
    std::optional<StopFrame> stop;
  };
  // The answers never come if the server is down or dies before.
  void Report(AttemptId attempt, const std::vector<ReportFrame>& frames,
              std::function<void(Reply)> answer);
  void Submit(JobRecord draft, std::function<void(Result<Engine::Accepted>)> answer);
  void Ask(JobId job, const JobEvent& event, std::function<void(Status)> answer);

 private:
  struct Life {
    explicit Life(World& world)
        : executor(world.executor),
          writer(executor, world, Millis(15)),
          effects(executor, world, Millis(250)) {}
    LifeExecutor executor;
    VirtualPool writer;
    VirtualPool effects;
    std::unique_ptr<Database> database;
    std::unique_ptr<JobStore> jobs;
    std::unique_ptr<Engine> engine;
  };
  void End();
  void Answer(JobId job, AttemptId attempt, bool refused, const std::function<void(Reply)>& answer);

  World& world_;
  Backend& backend_;
  Options options_;
  Watch watch_;
  Logger log_;
  std::unique_ptr<FaultVfs> vfs_;
  std::unique_ptr<Life> life_;
  bool disk_failing_ = false;
  int lives_ = 0;
};

}  // namespace athanor::sim
