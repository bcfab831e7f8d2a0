// JobStore keeps job records, their events and the outbox in the database.
//
// Threads: one writer thread calls Commit; every other method may be called from any thread (reads
// use their own connections and see the last commit). Durable means: survives kill -9 and power
// loss (synchronous=FULL).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/effect.h"
#include "job/event.h"
#include "job/record.h"

namespace athanor {

class Database;

// What one turn of the control thread decided; written in one transaction.
struct JobBatch {
  std::vector<JobRecord> records;  // new or changed, newest value
  std::vector<StoredEvent> events;
  std::vector<Effect> effects;      // to be performed
  std::vector<uint64_t> performed;  // ids of effects that are done
  std::vector<JobId> forget;        // jobs to delete with all their rows
  bool empty() const {
    return records.empty() && events.empty() && effects.empty() && performed.empty() &&
           forget.empty();
  }
};

// What a list shows of a job, without reading its spec.
struct JobSummary {
  JobId id;
  std::string name;
  std::string experiment;
  std::string user;
  JobState state = JobState::kQueued;
  WallTime created;
  WallTime started;  // of the first attempt; 0: never
  WallTime ended;
  std::string cause_kind;
  std::string cause_text;
  std::string type;
  std::string command;
  uint32_t attempts = 0;
  int64_t cost_micros = 0;
  bool simulated = false;
};

// How far a job is, and nothing else.
struct JobStage {
  JobId id;
  JobState state = JobState::kQueued;
  uint32_t attempts = 0;
};

struct JobQuery {
  bool live_only = false;
  std::vector<JobState> states;  // empty: all
  std::string user;              // empty: all
  std::string experiment;
  WallTime since;
  size_t limit = 100;           // newest first
  std::optional<JobId> before;  // for the next page
};

class JobStore {
 public:
  explicit JobStore(Database& database);
  ~JobStore();

  // All or nothing, durable when it returns. kConflict: another job has the key, or another event
  // the number; kExhausted: the disk is full.
  Status Commit(const JobBatch& batch);

  // From now on, a Commit that finds the disk full does not fail. It releases `reserve`, a file of
  // a few megabytes. If that is not enough, it waits on its thread for room, so that the server
  // continues by itself when there is some. `told` (may be empty) is called on that thread when a
  // wait begins (true) and ends.
  void WaitForRoom(const std::string& reserve, std::function<void(bool full)> told = {});
  // How much must be free so that it can continue and have its reserve again; 0: no Commit waits.
  // Any thread.
  uint64_t waits_for_bytes() const;
  // Ends a wait now and prevents later ones: kExhausted, nothing is stored. Any thread.
  void GiveUpWaiting();

  Result<JobRecord> Find(JobId id) const;  // kNotFound
  // Calls `visit` for every record; its error ends the walk. kCorrupt names a record that cannot be
  // read. The store is not locked while `visit` runs.
  Status ForEach(const std::function<Status(const JobRecord&)>& visit) const;
  // The job that was accepted under `key`, if any: its id and spec hash.
  struct KeyHit {
    JobId id;
    std::string spec_hash;
  };
  Result<std::optional<KeyHit>> FindKey(std::string_view key) const;
  // The newest earlier job whose SameRunHash equals `hash`.
  Result<std::optional<JobId>> FindSameRun(std::string_view hash) const;
  // In this order: id (either form); unique prefix of an id; name (the newest of that name); unique
  // end of an id; parts of ids have at least 4 digits, any case. Or @last (newest id),
  // @last-failed, each with ~N for the N-th before it. kNotFound with near names in the hint;
  // kConflict lists the candidates if a part is not unique.
  Result<JobId> Resolve(std::string_view reference) const;

  Result<std::vector<JobRecord>> Live() const;  // not terminal, oldest first
  // The same in any order, one at a time and moved out, so that a hundred thousand are never in
  // memory together.
  Status EachLive(const std::function<void(JobRecord&&)>& visit) const;
  Result<std::vector<Effect>> Outbox() const;    // in order
  Result<std::vector<JobStage>> Stages() const;  // of all jobs, in any order
  Result<std::vector<JobSummary>> List(const JobQuery& query) const;
  // How many List would return without a limit, on all pages.
  Result<uint64_t> CountOf(JobQuery query) const;
  // Events of one job after `after`, oldest first.
  Result<std::vector<StoredEvent>> Events(JobId id, uint64_t after, size_t limit) const;
  // Events of all jobs after a store-wide position; `position` is set to the last one's.
  // `positions`, if given, gets the position of each.
  Result<std::vector<StoredEvent>> EventsAfter(uint64_t& position, size_t limit,
                                               std::vector<uint64_t>* positions = nullptr) const;
  Result<uint64_t> LastEventPosition() const;
  struct Counts {
    uint64_t jobs = 0;
    std::vector<std::pair<JobState, uint64_t>> by_state;
  };
  Result<Counts> Count() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
