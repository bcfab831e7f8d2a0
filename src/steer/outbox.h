// The Outbox performs effects after they are durable, and repeats those without an answer. Effects
// of one job are performed one after the other, so that an attempt is released before the next one
// starts; those of different jobs do not wait for each other. A back end is asked for a few at
// once: ends have threads of their own, because they may take long, and no start waits for them. A
// slow back end delays no other.
//
// Threads: every method belongs to the executor's thread; calls of back ends run in pools.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "base/log.h"
#include "job/effect.h"
#include "job/event.h"
#include "launch/backends.h"

namespace athanor {

using MakePool = std::function<std::unique_ptr<Pool>(const std::string& backend, size_t threads)>;

class Outbox {
 public:
  struct Parts {
    Executor& executor;
    Logger& log;
    const Backends& backends;
    MakePool make_pool;
    std::function<const JobRecord*(JobId)> live;            // null: over
    std::function<std::optional<JobRecord>(JobId)> stored;  // of one that is over; none: removed
    std::function<Result<LaunchPlan>(const JobRecord&)> plan;
    // Agents are about to be started for these hosts of its current attempt.
    std::function<void(const JobRecord&, const std::vector<uint32_t>& hosts)> starting;
    // Why its attempt is not started yet; in memory only.
    std::function<void(JobId, const Cause&)> waits;
    // Its agents must hear what the record says now.
    std::function<void(const JobRecord&)> tell;
    // An effect needs no repetition; what it came to, if anything, is to be stored with that.
    std::function<void(uint64_t effect)> performed;
    std::function<void(JobId, JobEvent)> apply;
    std::function<void()> flush;
  };
  explicit Outbox(Parts parts);
  ~Outbox();

  void Perform(const Effect& effect);
  // Other agents for hosts of an attempt that lost theirs.
  void Relaunch(const JobRecord& record, const std::vector<uint32_t>& hosts);
  // Ends what is left of the current attempt; `ended` is called only if that succeeded, `failed`
  // otherwise.
  void End(const JobRecord& record, std::function<void()> ended, std::function<void()> failed);
  // Waits for the calls under way; what was not performed stays in the store.
  void Stop();

 private:
  // Runs in a pool; what it returns runs on the executor's thread, and says after how long the same
  // call is to be made again, before anything else of its job. None: it is done.
  using After = std::function<std::optional<Millis>()>;
  using Call = std::function<After()>;
  enum class Kind { kStart, kEnd };
  struct Launching {
    JobId job;
    AttemptId attempt;
    uint64_t effect = 0;  // 0: another agent for a host that lost its own
  };
  struct Work {
    Kind kind;
    std::string backend;
    Call call;
    std::optional<Launching> launching = {};  // of a start
  };
  void Add(JobId job, Work work);
  void RunFirst(JobId job);
  void Answered(JobId job, const After& after);
  // Whether its attempt is still to run: it may have ended while the start waited for its turn.
  bool IsWanted(const Launching& launching) const;
  void Launch(const JobRecord& record, const Effect* effect);
  void LaunchAnswered(const Launching& of, const Result<std::string>& handle);
  void Release(const Effect& effect);
  void LogReleaseFailed(const Error& error);
  void PerformLater(const Effect& effect);
  void Performed(uint64_t effect);

  Parts parts_;
  struct Pools {
    std::unique_ptr<Pool> starts;
    std::unique_ptr<Pool> ends;
  };
  std::map<std::string, Pools> pools_;       // by back end
  std::map<JobId, std::deque<Work>> lanes_;  // the first of each is under way
  bool stopped_ = false;
};

}  // namespace athanor
