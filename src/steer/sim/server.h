// SimServer is a server as agents and users see it: the real Engine on a real JobStore, the real
// Reports, and lives: it may be killed at any moment, and the next life has only what was
// committed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "launch/backends.h"
#include "link/wire.h"
#include "record/db/database.h"
#include "record/db/fault_vfs.h"
#include "record/jobs/job_store.h"
#include "steer/engine.h"
#include "steer/reports.h"
#include "steer/sim/world.h"

namespace athanor::sim {

class SimServer {
 public:
  // What the checker needs to know.
  struct Watch {
    std::function<void(const JobRecord&, const std::vector<StoredEvent>&)> durable;
    std::function<void(AttemptId, uint32_t host, int64_t held_ms)> usage_taken;
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

  // The answers never come if the server is down or dies before.
  void Report(AttemptId attempt, uint32_t host, const std::vector<ReportFrame>& frames,
              const std::function<void(const Reports::Answer&)>& answer);
  void Submit(JobRecord draft, std::function<void(Result<Engine::Accepted>)> answer);
  void Ask(JobId job, const JobEvent& event, std::function<void(Status)> answer);

 private:
  // Of what agents say, the rest is not simulated.
  class Sink final : public ReportSink {
   public:
    explicit Sink(const Watch& watch) : watch_(watch) {}
    Result<uint64_t> TakeLog(const Reporter&, const LogFrame&) override { return 0; }
    Status TakePoints(const Reporter&, const PointBatch&) override { return Ok(); }
    void TakeUsage(const Reporter& from, const UsageFrame& frame) override {
      watch_.usage_taken(from.attempt, from.host, frame.held_ms);
    }
    void TakeProgress(const Reporter&, const ProgressFrame&) override {}
    void TakeSupervisor(const Reporter&, uint64_t) override {}

   private:
    const Watch& watch_;
  };
  struct Life {
    explicit Life(World& world) : executor(world.executor), writer(executor, world, Millis(15)) {}
    LifeExecutor executor;
    VirtualPool writer;
    std::unique_ptr<Database> database;
    std::unique_ptr<JobStore> jobs;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Reports> reports;
  };
  void End();

  World& world_;
  Options options_;
  Watch watch_;
  Sink sink_{watch_};
  Backends backends_;
  Logger log_;
  std::unique_ptr<FaultVfs> vfs_;
  std::unique_ptr<Life> life_;
  bool disk_failing_ = false;
  int lives_ = 0;
};

}  // namespace athanor::sim
