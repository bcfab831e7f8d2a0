// A world of trials in virtual time, for tests: jobs end after a seeded time with a value that
// depends on their parameters, fail, are lost, report points, and outlive the studies that ordered
// them.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/exec/pool.h"
#include "base/exec/sim_executor.h"
#include "study/studies.h"

namespace athanor {

// One thread in virtual time; Kill() drops what has not run yet, as kill -9 would.
class SimPool final : public Pool {
 public:
  explicit SimPool(Executor& executor) : executor_(executor) {}
  [[nodiscard]] bool Submit(Task task) override {
    executor_.Post([alive = alive_, task = std::move(task)] {
      if (*alive) task();
    });
    return true;
  }
  void Stop() override {}
  void Kill() { *alive_ = false; }

 private:
  Executor& executor_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class FakeTrials final : public TrialRunner {
 public:
  struct Chances {
    double fail = 0, lose = 0, silent = 0;
    int steps = 0;  // points reported on the way
  };
  FakeTrials(SimExecutor& executor, uint64_t seed, Chances chances)
      : executor_(executor), random_(seed), chances_(chances) {}

  struct Job {
    std::string key;
    std::string params;
    std::string resume_job;
    TrialSight sight;
    bool stop = false;
  };

  Studies* studies = nullptr;  // of the life that is watching; null: none
  std::map<JobId, Job> jobs;
  size_t most_running = 0;

  // Of a trial with these parameters, x and n: lowest at 0.3 and 4.
  static double Objective(const std::string& params);

  void Submit(const TrialOrder& order, std::function<void(Result<JobId>)> done) override {
    for (const auto& [id, job] : jobs) {
      if (job.key == order.key()) return done(id);
    }
    const auto id = JobId{NewUlid(executor_.clock().Wall().ms)};
    Job job;
    job.key = order.key();
    job.params = order.params;
    job.resume_job = order.resume_job;
    job.sight.state = JobState::kRunning;
    int done_before = 0;  // its checkpoint is that of the last point
    if (const auto earlier = JobId::Parse(order.resume_job)) {
      const auto& points = jobs.at(*earlier).sight.points;
      done_before = points.empty() ? 0 : static_cast<int>(points.back().step);
    }
    jobs.emplace(id, std::move(job));
    most_running = std::max(most_running, Running());
    for (int step = done_before + 1; step <= chances_.steps; ++step) {
      executor_.After(Millis((step - done_before) * 1'000), [this, id, step] { Point(id, step); });
    }
    const auto left = Millis((chances_.steps - done_before) * 1'000 + 500 + Dice(2'000));
    executor_.After(left, [this, id] { End(id); });
    done(id);
  }
  void Stop(JobId job, const Cause& cause) override {
    auto& known = jobs.at(job);
    if (known.stop || IsTerminal(known.sight.state)) return;
    known.stop = true;
    executor_.After(Millis(Dice(500)), [this, job, cause] {
      auto& now = jobs.at(job);
      if (IsTerminal(now.sight.state)) return;
      now.sight.state = JobState::kStopped;
      now.sight.cause = cause;
      if (studies) studies->JobChanged(job, true);
    });
  }
  int64_t LiveCostMicros(JobId job) override {
    return IsTerminal(jobs.at(job).sight.state) ? 0 : 500'000;
  }
  Result<TrialSight> Look(JobId job, const std::string&) override { return jobs.at(job).sight; }
  Result<std::optional<JobId>> FindKey(const TrialOrder& order) override {
    for (const auto& [id, job] : jobs) {
      if (job.key == order.key()) return std::optional(id);
    }
    return std::optional<JobId>();
  }
  LastWords Listen(JobId) override { return {"the last line", {"los"}}; }

  size_t Running() const {
    size_t running = 0;
    for (const auto& [id, job] : jobs) running += !IsTerminal(job.sight.state);
    return running;
  }
  int64_t Dice(int64_t most) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(most + 1));
  }
  bool Chance(double share) { return static_cast<double>(random_() % 1'000'000) < share * 1e6; }

 private:
  void Point(JobId id, int step) {
    auto& job = jobs.at(id);
    if (IsTerminal(job.sight.state)) return;
    job.sight.points.push_back({step, Objective(job.params) + 1.0 / step});
    if (studies) studies->PointsCame(id);
  }
  void End(JobId id) {
    auto& job = jobs.at(id);
    if (IsTerminal(job.sight.state)) return;
    job.sight.cost_micros = 1'000'000;
    job.sight.held_ms = 1'000;
    if (Chance(chances_.lose)) {
      job.sight.state = JobState::kFailed;
      job.sight.cause = {"agent_lost", "", "", ""};
    } else if (Chance(chances_.fail)) {
      job.sight.state = JobState::kFailed;
      job.sight.cause = {"python_exception", "ValueError", "", ""};
    } else {
      job.sight.state = JobState::kCompleted;
      if (!Chance(chances_.silent)) {
        job.sight.points.push_back({chances_.steps + 1, Objective(job.params)});
      }
    }
    if (studies) studies->JobChanged(id, true);
  }

  SimExecutor& executor_;
  std::mt19937_64 random_;
  Chances chances_;
};

}  // namespace athanor
