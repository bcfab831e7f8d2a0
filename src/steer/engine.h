// The Engine runs jobs: only it changes their state. One control thread holds the live records,
// applies Decide(), writes event + record + effects in one durable batch (many jobs per batch), and
// only then answers, notifies observers and performs effects. A failed commit ends the process
// (`fatal`): memory and store must never differ. A restarted engine continues from the store: live
// records, and the effects that were not yet performed.
//
// Its parts: Outbox performs the effects, HostWatch asks the back ends what became of the hosts.
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
#include "launch/backends.h"
#include "price/catalogue.h"
#include "record/jobs/job_store.h"
#include "steer/host_watch.h"
#include "steer/live_attempt.h"
#include "steer/outbox.h"

namespace athanor {

struct LineView;  // steer/queue_view.h
struct Need;

class Engine {
 public:
  struct Parts {
    Executor& executor;
    const Clock& clock;
    JobStore& jobs;
    Pool& writer;        // exactly one thread: commits in order
    MakePool make_pool;  // for the calls of back ends
    const Backends& backends;
    Logger& log;
    const Catalogue& catalogue;
    bool simulate;  // types larger than this machine run on what it has
    // What the agents need for the current attempt of a record.
    // An error: it cannot be launched as things are, and why.
    std::function<Result<LaunchPlan>(const JobRecord&)> plan;
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
  // What a host of a live attempt has held and uses; stored with its job's next event.
  void Touch(AttemptId attempt, uint32_t host, int64_t held_ms, const HostUsage& usage);

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
  // The first `most` of them as a back end's queue, with what runs there.
  LineView ViewLine(const Backends::Entry& at, size_t most);
  const Backends& backends() const { return parts_.backends; }

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
  Outbox::Parts OutboxParts();
  HostWatch::Parts WatchParts();
  void EachSecond();
  // Puts a record of live_ where its state belongs: in the line, among those that hold room, or
  // nowhere.
  void File(JobRecord& record);
  void Keep(const JobRecord& record);
  void Flush();
  void Committed(Status status, std::shared_ptr<Pending> batch);
  // Its end is stored.
  void Leave(const JobRecord& record);
  // Why a plan is needed: room became free, or only a new job joined a waiting line.
  enum class Wanted { kRoomCame, kNewcomer };
  void SchedulePlacing(Wanted wanted);
  void PlaceAfter(Millis delay);
  Millis PauseFor(Wanted wanted) const;
  void PlaceWaiting();
  // Places what fits at one back end; the others get its reasons. Returns when to plan again; 0:
  // when something changes.
  Millis PlaceAt(const Backends::Entry& at, std::map<JobId, Error>& impossible);
  void TellWait(JobRecord& record, const Cause& wait);
  // What is left of the pause before its next attempt.
  Millis RestLeft(const JobRecord& record);
  Placed PlacementOf(const JobRecord& record, std::vector<Placement> hosts) const;
  // The reason that the last plan gave jobs with the same need; null: none.
  const Cause* KnownWait(const JobRecord& record) const;
  // Spot: deliberate interruptions, and max_wait.
  void ArmSpot(const JobRecord& record);
  void CheckWaits();

  Parts parts_;
  SlabMap<JobId, JobRecord> live_;
  // Of live_. Code that looks at jobs every second looks only at these, however many wait.
  std::set<JobId> holding_;
  std::map<Place, JobRecord*> line_;
  LiveAttempts attempts_;
  std::map<std::string, JobId> pending_keys_;
  std::map<JobId, uint32_t> overtaken_;
  Pending pending_;
  // Causes of the last plan by need and priority, for a line that is long.
  using WaitKey = std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, int32_t>;
  static WaitKey WaitKeyOf(const Need& need, int32_t priority);
  std::map<WaitKey, Cause> waits_;
  std::map<JobId, Millis> waits_until_;           // monotonic; of spot jobs with max_wait
  std::set<std::pair<Millis, JobId>> wait_ends_;  // the same, the next first; without reported ones
  Millis plan_cost_{0};
  bool committing_ = false;
  std::optional<Millis> placing_at_;  // monotonic: a plan is set for then
  Executor::TimerId placing_timer_ = 0;
  bool stopped_ = false;
  uint64_t next_effect_ = 1;
  Executor::TimerId look_timer_ = 0;
  Outbox outbox_;
  HostWatch watch_;
};

}  // namespace athanor
