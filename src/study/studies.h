// Studies runs tuning jobs: asks `tune` for parameters, has them run as ordinary jobs, tells it how
// they ended, stops those not worth going on with, and ends when it is enough. What happens is
// appended to the study's journal before anything acts on it; a restarted server reads the journal
// and goes on, with the same suggestions. What is to be done is Decide()'s to say.
//
// Threads: every method belongs to the executor's thread, and callbacks come there. Searching and
// writing happen on the worker (exactly one thread), which alone holds the open studies.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/result.h"
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

  // Goes on with the studies that were not over.
  void Start();
  // Orders and stops nothing more; trials go on. Before the worker is stopped.
  void Stop();

  struct Created {
    StudyId id;
    std::string name;
    bool duplicate = false;  // the key was known: this is the earlier study
  };
  void Create(StudySpec spec, std::string key, std::string user,
              std::function<void(Result<Created>)> done);

  using Shown = std::function<void(Result<StudyRecord>)>;
  // With `wait`, not before its journal is longer than `after`, or the wait is over.
  void Show(std::string reference, uint64_t after, Millis wait, Shown done);
  // Also those that are over, newest first.
  void List(std::function<void(Result<std::vector<StudyRecord>>)> done);

  // Each is answered when it is durable, with what the study then is. kConflict: it is over (or,
  // of Remove, is not).
  void StopStudy(std::string reference, std::string who, Shown done);
  void Extend(std::string reference, Json changes, Shown done);
  // A trial with these parameters, beside what the search asks for.
  void Add(std::string reference, Json params, Shown done);
  void Remove(std::string reference, Shown done);

  // Told by the server: a job changed; it reported points.
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
  // Until nothing is left to decide; then what was decided is stored and done.
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
  bool stopped_ = false;                           // the executor's
  // Shared with tasks that may come after the end.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace athanor
