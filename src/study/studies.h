// Studies runs tuning jobs: asks `tune` for parameters, runs them as ordinary jobs, tells `tune`
// how they ended, stops trials that are not worth continuing, and ends when a limit is reached.
// What happens is appended to the study's journal before anything acts on it; a restarted server
// reads the journal and continues, with the same suggestions. Decide() decides what to do.
//
// Threads: every method belongs to the executor's thread, and callbacks come there. Searching and
// writing happen on the worker (exactly one thread), which is the only one with access to the open
// studies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text/json.h"
#include "study/decide.h"
#include "study/record.h"
#include "study/trial_runner.h"
#include "tune/session.h"

namespace athanor {

class Studies {
 public:
  struct Parts {
    Executor& executor;
    Pool& worker;
    const Clock& clock;
    Logger& log;
    StudyStore& store;
    TrialRunner& trials;
  };
  explicit Studies(Parts parts);
  ~Studies();

  // Continues the studies that had not ended.
  void Start();
  // Submits and stops nothing more; trials continue. Call it before the worker is stopped.
  void Stop();

  struct Created {
    StudyId id;
    std::string name;
    bool duplicate = false;  // the key was known: this is the earlier study
  };
  void Create(StudySpec spec, std::string key, std::string user,
              std::function<void(Result<Created>)> done);

  using Shown = std::function<void(Result<StudyRecord>)>;
  // With `wait`, answers when its journal is longer than `after`, or the wait is over.
  void Show(std::string reference, uint64_t after, Millis wait, Shown done);
  // Also those that have ended, newest first.
  void List(std::function<void(Result<std::vector<StudyRecord>>)> done);

  // Each is answered when it is durable, with the new state of the study. kConflict: it has ended
  // (or, for Remove, has not).
  void StopStudy(std::string reference, std::string who, Shown done);
  void Extend(std::string reference, Json changes, Shown done);
  // A trial with these parameters, in addition to those of the search.
  void Add(std::string reference, Json params, Shown done);
  void Remove(std::string reference, Shown done);

  // Called by the server: a job changed; it reported points.
  void JobChanged(JobId job, bool over);
  void PointsCame(JobId job);

 private:
  struct Open;
  struct Waiter;
  struct Whose {
    StudyId study;
    int64_t trial = 0;
    bool looks = false;    // early stopping reads its points
    bool pending = false;  // a look is on its way
  };

  // On the worker.
  void Load();
  Result<Open*> OpenStudy(const StudyRow& row);
  Result<Created> DoCreate(StudySpec spec, const std::string& key, const std::string& user);
  Result<StudyRecord> Find(const std::string& reference);
  Result<Open*> ForChange(const std::string& reference, bool over_too);
  Status Record(Open& open, StudyEvent event);
  Status Flush(Open& open);
  // Until nothing is left to decide; then the decisions are stored and carried out.
  void Step(Open& open);
  Status StepOnce(Open& open, bool& more);
  Status AskFor(Open& open, int64_t count);
  Status LookAt(Open& open, int64_t trial);
  Status EndTrial(Open& open, const TrialRecord& trial, const TrialSight& sight);
  Status ReportTrial(Open& open, const TrialRecord& trial, const TrialSight& sight);
  void Perform(Open& open, const Plan& plan);
  void GiveUp(StudyId id, const Error& error);
  void Tell(const StudyRecord& record);
  bool OnWorker(std::function<void()> task);
  void OnLoop(std::function<void()> task);
  // On the executor.
  void Tick();
  void Submitted(const TrialOrder& order, const Result<JobId>& job);

  Parts parts_;
  std::map<StudyId, std::unique_ptr<Open>> open_;  // the worker's
  std::vector<Waiter> waiters_;                    // the worker's
  std::map<JobId, Whose> jobs_;                    // the executor's
  Executor::TimerId tick_ = 0;
  bool stopped_ = false;  // the executor's
  // Shared with tasks that may come after the end.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace athanor
