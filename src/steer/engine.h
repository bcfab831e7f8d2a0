// The Engine runs jobs: only it changes their state. One control thread holds the live records,
// applies Decide(), writes event + record + effects in one durable batch (many jobs per batch), and
// only then answers, notifies observers and performs effects. A failed commit ends the process
// (`fatal`): memory and store must never differ. A restarted engine continues from the store: live
// records, and the effects that were not yet performed.
//
// Threads: every method belongs to the executor's thread; callbacks come there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "base/log.h"
#include "base/result.h"
#include "base/slabs.h"
#include "job/event.h"
#include "job/inventory.h"
#include "launch/backend.h"
#include "price/catalogue.h"
#include "record/jobs/job_store.h"
#include "steer/agent_lives.h"

namespace athanor {

class Engine {
 public:
  struct Parts {
    Executor& executor;
    const Clock& clock;
    JobStore& jobs;
    Pool& writer;   // exactly one thread: commits in order
    Pool& effects;  // exactly one thread: an attempt is released before the next starts
    Backend& backend;
    Logger& log;
    Inventory inventory;
    const Catalogue& catalogue;
    bool simulate;  // types larger than this machine run on what it has
    // What the agents need for the current attempt of a record.
    std::function<LaunchPlan(const JobRecord&)> plan;
    // A change became durable. `events` may be empty.
    std::function<void(const JobRecord&, const std::vector<StoredEvent>&)> changed;
    std::function<void(const Error&)> fatal;
  };
  explicit Engine(Parts parts);
  ~Engine();

  Status Start();
  // Accepts nothing more and waits for what is being written.
  void Stop();

  struct Accepted {
    JobId id;
    bool duplicate = false;  // the key was known: this is the earlier job
  };
  // `draft` has id, key, user, spec and price; durable before `done` is called.
  // kConflict: the key came before with another spec.
  void Submit(JobRecord draft, std::function<void(Result<Accepted>)> done);

  // Decides and stores; `done` (may be empty) is called when it is durable, or at once with
  // kConflict (fenced, or the state forbids it) or kNotFound.
  void Apply(JobId job, JobEvent event, std::function<void(Status)> done = {});
  // Deletes a job that has ended. kConflict for a live one.
  void Forget(JobId job, std::function<void(Status)> done);
  // What a live attempt has held so far; stored with its job's next event.
  void Touch(AttemptId attempt, int64_t held_ms);

  const JobRecord* Live(JobId job) const;
  std::optional<JobId> JobOf(AttemptId attempt) const;  // of live jobs
  std::vector<const JobRecord*> AllLive() const;
  // Jobs that hold room on the machine, oldest first.
  std::vector<const JobRecord*> Holding() const;
  size_t live_count() const { return live_.size(); }
  // Waiting jobs, in the order of the queue: higher priority first, then older. `visit` may end the
  // walk by returning false; it must not change anything.
  size_t waiting_count() const { return line_.size(); }
  void EachWaiting(const std::function<bool(const JobRecord&)>& visit) const;

 private:
  struct Pending {
    JobBatch batch;
    std::map<JobId, size_t> index;  // of batch.records
    std::vector<std::function<void(Status)>> done;
  };

  // A position in the line: positions compare in the order of the queue.
  struct Place {
    int64_t after = 0;  // the higher a priority the lower
    JobId job;
    auto operator<=>(const Place&) const = default;
  };
  static Place PlaceOf(const JobRecord& record) {
    return {-int64_t{record.spec.priority}, record.id};
  }
  // Puts a record of live_ where its state belongs: in the line, among those that hold room, or
  // nowhere.
  void File(JobRecord& record);
  void Keep(const JobRecord& record);
  void Flush();
  void Committed(Status status, std::shared_ptr<Pending> batch);
  void Perform(const Effect& effect);
  void PerformLater(const Effect& effect);
  // Without an effect: another agent for an attempt that lost its own.
  void Launch(const JobRecord& record, std::optional<Effect> effect);
  void LaunchAnswered(const LaunchPlan& plan, const std::optional<Effect>& effect,
                      const Result<std::string>& handle);
  void Release(const std::string& handle, std::function<void(const Status&)> done);
  void Performed(uint64_t effect);
  // Why a plan is needed: room became free, or only a new job joined a waiting line.
  enum class Wanted { kRoomCame, kNewcomer };
  void SchedulePlacing(Wanted wanted);
  void PlaceAfter(Millis delay);
  Millis PauseFor(Wanted wanted) const;
  void PlaceWaiting();
  // What is left of the pause before its next attempt.
  Millis RestLeft(const JobRecord& record);
  Placed PlacementOf(JobId job, const Placement& placement) const;
  // The reason that the last plan gave jobs with the same need; null: none.
  const Cause* KnownWait(const JobRecord& record) const;
  // Spot: deliberate interruptions, and max_wait.
  void ArmSpot(const JobRecord& record);
  void CheckWaits();
  void PollAttempts();
  void PolledGone(AttemptId attempt, const HostStatus& status);

  Parts parts_;
  SlabMap<JobId, JobRecord> live_;
  // Of live_. Code that looks at jobs every second looks only at these, however many wait.
  std::set<JobId> holding_;
  std::map<Place, JobRecord*> line_;
  std::map<AttemptId, JobId> attempts_;
  std::map<std::string, JobId> pending_keys_;
  std::map<AttemptId, AgentLives> agent_lives_;
  std::map<JobId, uint32_t> overtaken_;
  std::map<AttemptId, Millis> launched_at_;
  std::map<AttemptId, Millis> rests_until_;  // monotonic; after which attempt
  Pending pending_;
  // Causes of the last plan by (CPUs, memory, GPUs, priority), for a line that is long.
  std::map<std::tuple<uint32_t, uint64_t, uint32_t, int32_t>, Cause> waits_;
  std::map<JobId, Millis> waits_until_;           // monotonic; of spot jobs with max_wait
  std::set<std::pair<Millis, JobId>> wait_ends_;  // the same, the next first; without reported ones
  std::set<AttemptId> armed_;                     // a deliberate interruption is scheduled for it
  Millis plan_cost_{0};
  bool committing_ = false;
  std::optional<Millis> placing_at_;  // monotonic: a plan is set for then
  Executor::TimerId placing_timer_ = 0;
  bool stopped_ = false;
  uint64_t next_effect_ = 1;
  Executor::TimerId poll_timer_ = 0;
};

}  // namespace athanor
