#include "record/jobs/job_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/exec/mutex.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "job/record_reader.h"
#include "job/record_text.h"
#include "record/db/database.h"
#include "record/db/disk_reserve.h"
#include "record/jobs/job_summary.h"
#include "record/jobs/newest_times.h"
#include "record/jobs/references.h"

namespace athanor {
namespace {

// The largest batches seen are far smaller; the log grows by what is written.
constexpr uint64_t kReserveBytes = 4 << 20;
constexpr std::chrono::milliseconds kLookForRoom{200};

int64_t Clamped(size_t limit) {
  constexpr auto kMost = static_cast<size_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(limit, kMost));
}

Result<JobId> JobIdIn(const Statement& row, int column) {
  const auto id = JobId::Parse(row.Text(column));
  if (!id) return Fail(ErrorCode::kCorrupt, "the store holds a job id that is none");
  return *id;
}

Result<JobState> StateIn(const Statement& row, int column) {
  const auto state = StateNamed(row.Text(column));
  if (!state) {
    return Fail(ErrorCode::kCorrupt, fmt::format("the store holds a state that is none: '{}'",
                                                 Printable(row.Text(column))));
  }
  return *state;
}

Result<JobRecord> ParseRecord(std::string_view id, std::string_view text) {
  Result<JobRecord> record;
  if (ReadRecordText(text, *record)) return record;
  record = ParseJson(text).and_then([](const Json& json) { return RecordFromJson(json); });
  if (record) return record;
  return Fail(Error{ErrorCode::kCorrupt, fmt::format("the record of job {} cannot be read", id),
                    fmt::format("ath rm {}    forgets this job; the others are not touched", id)}
                  .Why(record.error().what));
}

Result<Cause> ParseCause(std::string_view text) {
  if (text.empty()) return Cause{};
  auto cause = ParseJson(text).and_then([](const Json& json) { return CauseFromJson(json); });
  if (!cause) return Fail(ErrorCode::kCorrupt, "the cause of an event cannot be read");
  return cause;
}

Status Finish(Statement& statement) {
  while (true) {
    ATHANOR_TRY(const bool row, statement.Step());
    if (!row) return Ok();
  }
}

void BindColumns(Statement& statement, const std::string& id, const JobSummary& job) {
  statement.Bind(1, id);
  statement.Bind(2, NameOf(job.state));
  statement.Bind(3, int64_t{!IsTerminal(job.state)});
  statement.Bind(4, job.started.ms);
  statement.Bind(5, job.ended.ms);
  statement.Bind(6, job.cause_kind);
  statement.Bind(7, job.cause_text);
  statement.Bind(8, static_cast<int64_t>(job.attempts));
  statement.Bind(9, job.cost_micros);
  statement.Bind(10, int64_t{job.simulated});
}

// The job that was accepted under `key`.
Result<std::optional<JobStore::KeyHit>> KeyIn(Connection& connection, std::string_view key) {
  ATHANOR_TRY(auto* row, connection.Prepare("SELECT job, spec_hash FROM keys WHERE key = ?1"));
  row->Bind(1, key);
  ATHANOR_TRY(const bool known, row->Step());
  if (!known) return std::nullopt;
  ATHANOR_TRY(const JobId id, JobIdIn(*row, 0));
  return JobStore::KeyHit{id, std::string(row->Text(1))};
}

// That the key is new is checked by the index, in the same transaction.
Status InsertKey(Connection& connection, const std::string& id, const JobRecord& record) {
  ATHANOR_TRY(auto* key, connection.Prepare("INSERT INTO keys (key, job, spec_hash, created) "
                                            "VALUES (?1, ?2, ?3, ?4)"));
  key->Bind(1, record.key);
  key->Bind(2, id);
  key->Bind(3, record.spec_hash);
  key->Bind(4, record.created.ms);
  auto inserted = key->Step();
  if (inserted) return Ok();
  Error error = std::move(inserted).error();
  if (error.code == ErrorCode::kConflict) {
    error.why = std::move(error.what);
    error.what = "this key was given to another job";
  }
  return Fail(std::move(error));
}

Status InsertJob(Connection& connection, const std::string& id, const JobRecord& record,
                 NewestTimes& times) {
  ATHANOR_TRY(auto* job,
              connection.Prepare(
                  "INSERT INTO jobs (id, state, live, started, ended, cause_kind, cause_text, "
                  "attempts, cost_micros, simulated, created, name, experiment, owner, type, "
                  "command, same_hash) "
                  "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)"));
  const JobSummary summary = SummaryOf(record);
  BindColumns(*job, id, summary);
  job->Bind(11, summary.created.ms);
  job->Bind(12, summary.name);
  job->Bind(13, summary.experiment);
  job->Bind(14, summary.user);
  job->Bind(15, summary.type);
  job->Bind(16, summary.command);
  const std::string same = SameRunHash(record.spec);
  job->Bind(17, same);
  ATHANOR_CHECK_OK(job->Step());
  if (!record.key.empty()) ATHANOR_CHECK_OK(InsertKey(connection, id, record));
  // Before the commit: who looks a job up after it must find them.
  times.Add(NewestTimes::Of::kName, summary.name, summary.created.ms);
  times.Add(NewestTimes::Of::kRun, same, summary.created.ms);
  times.Add(NewestTimes::Of::kKey, record.key, summary.created.ms);
  return Ok();
}

// What a submit fixed (name, command, hash, key) is written once; everything else each time.
Result<bool> UpdateJob(Connection& connection, const std::string& id, const JobRecord& record) {
  ATHANOR_TRY(auto* update,
              connection.Prepare("UPDATE jobs SET state=?2, live=?3, started=?4, ended=?5, "
                                 "cause_kind=?6, cause_text=?7, attempts=?8, cost_micros=?9, "
                                 "simulated=?10 WHERE id=?1 RETURNING 1"));
  BindColumns(*update, id, SummaryOf(record));
  ATHANOR_TRY(const bool known, update->Step());
  if (known) ATHANOR_CHECK_OK(Finish(*update));
  return known;
}

// `fresh`: certainly not in the store.
Status PutRecord(Connection& connection, const JobRecord& record, bool fresh, NewestTimes& times) {
  const std::string id = record.id.ToString();
  bool known = false;
  if (!fresh) {
    ATHANOR_TRY(known, UpdateJob(connection, id, record));
  }
  if (!known) ATHANOR_CHECK_OK(InsertJob(connection, id, record, times));
  ATHANOR_TRY(auto* whole, connection.Prepare(known ? "UPDATE records SET json=?2 WHERE job=?1"
                                                    : "INSERT INTO records (job, json) "
                                                      "VALUES (?1, ?2)"));
  whole->Bind(1, id);
  whole->Bind(2, RecordText(record));
  ATHANOR_CHECK_OK(whole->Step());
  return Ok();
}

Status PutEvent(Connection& connection, const StoredEvent& event) {
  ATHANOR_TRY(auto* statement,
              connection.Prepare("INSERT INTO events (job, seq, at, name, state, attempt, cause) "
                                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
  statement->Bind(1, event.job.ToString());
  statement->Bind(2, static_cast<int64_t>(event.seq));
  statement->Bind(3, event.at.ms);
  statement->Bind(4, event.name);
  statement->Bind(5, NameOf(event.state));
  statement->Bind(6, static_cast<int64_t>(event.attempt));
  statement->Bind(7, event.cause == Cause{} ? std::string() : DumpJson(ToJson(event.cause)));
  ATHANOR_CHECK_OK(statement->Step());
  return Ok();
}

Status PutEffect(Connection& connection, const Effect& effect) {
  ATHANOR_TRY(auto* statement, connection.Prepare("INSERT INTO outbox (id, kind, job, attempt) "
                                                  "VALUES (?1, ?2, ?3, ?4)"));
  statement->Bind(1, static_cast<int64_t>(effect.id));
  statement->Bind(2, NameOf(effect.kind));
  statement->Bind(3, effect.job.ToString());
  statement->Bind(4, effect.attempt.ToString());
  ATHANOR_CHECK_OK(statement->Step());
  return Ok();
}

// A job's first event comes with the job.
std::vector<JobId> FreshJobs(const JobBatch& batch) {
  std::vector<JobId> fresh;
  for (const auto& event : batch.events) {
    if (event.seq == 1) fresh.push_back(event.job);
  }
  std::ranges::sort(fresh);
  return fresh;
}

Result<Effect> EffectIn(const Statement& row) {
  Effect effect;
  effect.id = static_cast<uint64_t>(row.Int(0));
  const std::string_view kind = row.Text(1);
  bool known = false;
  for (const auto candidate : {EffectKind::kLaunch, EffectKind::kStop, EffectKind::kRelease}) {
    if (kind != NameOf(candidate)) continue;
    effect.kind = candidate;
    known = true;
  }
  const auto attempt = AttemptId::Parse(row.Text(3));
  if (!known || !attempt) return Fail(ErrorCode::kCorrupt, "the store holds an unknown effect");
  effect.attempt = *attempt;
  ATHANOR_TRY(effect.job, JobIdIn(row, 2));
  return effect;
}

Result<StoredEvent> EventIn(const Statement& row) {
  StoredEvent event;
  ATHANOR_TRY(event.job, JobIdIn(row, 1));
  event.seq = static_cast<uint64_t>(row.Int(2));
  event.at = WallTime{row.Int(3)};
  event.name = row.Text(4);
  ATHANOR_TRY(event.state, StateIn(row, 5));
  event.attempt = static_cast<uint32_t>(row.Int(6));
  ATHANOR_TRY(event.cause, ParseCause(row.Text(7)));
  return event;
}

Result<JobSummary> SummaryIn(const Statement& row) {
  JobSummary job;
  ATHANOR_TRY(job.id, JobIdIn(row, 0));
  job.name = row.Text(1);
  job.experiment = row.Text(2);
  job.user = row.Text(3);
  ATHANOR_TRY(job.state, StateIn(row, 4));
  job.created = WallTime{row.Int(5)};
  job.started = WallTime{row.Int(6)};
  job.ended = WallTime{row.Int(7)};
  job.cause_kind = row.Text(8);
  job.cause_text = row.Text(9);
  job.type = row.Text(10);
  job.command = row.Text(11);
  job.attempts = static_cast<uint32_t>(row.Int(12));
  job.cost_micros = row.Int(13);
  job.simulated = row.Int(14) != 0;
  return job;
}

// From FROM on.
std::string FromSql(const JobQuery& query) {
  const bool live =
      query.live_only || (!query.states.empty() && std::ranges::none_of(query.states, IsTerminal));
  std::string sql = "FROM jobs ";
  // Live jobs are few among many, which SQLite does not know; `+` prevents it from using the index
  // by time.
  if (live) sql += "INDEXED BY jobs_live ";
  sql += "WHERE +created >= ?1";
  if (live) sql += " AND live = 1";
  if (!query.states.empty()) {
    // Each once, in the table's order, so that equal filters share a prepared statement.
    std::string names;
    for (const JobState state : kAllStates) {
      if (std::ranges::find(query.states, state) == query.states.end()) continue;
      names += fmt::format("{}'{}'", names.empty() ? "" : ",", NameOf(state));
    }
    sql += " AND state IN (" + names + ")";
    // So that the index of those can be used.
    if (std::ranges::all_of(query.states, IsTerminal)) sql += " AND live = 0";
  }
  if (!query.user.empty()) sql += " AND owner = ?3";
  if (!query.experiment.empty()) sql += " AND experiment = ?4";
  if (query.before) sql += " AND id < ?5";
  return sql;
}

// Newest first means by id: ids increase, whatever the clock does.
std::string ListSql(const JobQuery& query) {
  return "SELECT id, name, experiment, owner, state, created, started, ended, cause_kind, "
         "cause_text, type, command, attempts, cost_micros, simulated " +
         FromSql(query) + " ORDER BY id DESC LIMIT ?2";
}

void BindQuery(Statement& statement, const JobQuery& query) {
  statement.Bind(1, query.since.ms);
  if (!query.user.empty()) statement.Bind(3, query.user);
  if (!query.experiment.empty()) statement.Bind(4, query.experiment);
  if (query.before) statement.Bind(5, query.before->ToString());
}

template <class T, class Read>
Status Collect(Statement& statement, std::vector<T>& out, const Read& read) {
  while (true) {
    ATHANOR_TRY(const bool row, statement.Step());
    if (!row) return Ok();
    ATHANOR_TRY(T value, read(statement));
    out.push_back(std::move(value));
  }
}

constexpr std::string_view kEventColumns =
    "SELECT position, job, seq, at, name, state, attempt, cause FROM events";

}  // namespace

struct JobStore::Parts {
  explicit Parts(Database& store) : database(store) {}

  Status Write(const JobBatch& batch);
  void Tell(bool full) {
    if (waiting.exchange(full) != full && told) told(full);
  }
  // False if nothing should wait any longer.
  bool Pause() {
    MutexLock lock(mutex);
    return !wake.wait_for(lock, kLookForRoom, [this]() REQUIRES(mutex) { return given_up; });
  }

  // Reads the content of the store into `times`; the first call does. Once; and if asked, also the
  // stage of all jobs, in the same scan.
  Status ReadTimes(std::vector<JobStage>* stages = nullptr);
  // When the newest job with this text may have been created; none: never.
  Result<std::optional<int64_t>> When(NewestTimes::Of kind, std::string_view text) {
    ATHANOR_CHECK_OK(ReadTimes());
    return times.Find(kind, text);
  }

  Database& database;
  NewestTimes times;
  Mutex reading;
  bool times_read GUARDED_BY(reading) = false;
  std::unique_ptr<DiskReserve> reserve;  // null: a full disk is an error
  std::function<void(bool)> told;
  std::atomic<bool> waiting = false;
  Mutex mutex;
  CondVar wake;
  bool given_up GUARDED_BY(mutex) = false;
};

JobStore::JobStore(Database& database) : parts_(new Parts(database)) {}
JobStore::~JobStore() = default;

Status JobStore::Parts::ReadTimes(std::vector<JobStage>* stages) {
  const MutexLock lock(reading);
  if (times_read && stages == nullptr) return Ok();
  ATHANOR_CHECK_OK(database.Read([&](Connection& connection) REQUIRES(reading) -> Status {
    // The store has them by time, which is the order of ids unless the clock was set back.
    bool in_order = true;
    for (const char* order : {"", " ORDER BY id"}) {
      ATHANOR_TRY(
          auto* jobs,
          connection.Prepare(
              std::string("SELECT created, name, same_hash, id, state, attempts FROM jobs") +
              order));
      in_order = true;
      if (stages) stages->clear();
      for (std::string last;;) {
        ATHANOR_TRY(const bool row, jobs->Step());
        if (!row) break;
        if (stages) {
          auto& stage = stages->emplace_back();
          ATHANOR_TRY(stage.id, JobIdIn(*jobs, 3));
          ATHANOR_TRY(stage.state, StateIn(*jobs, 4));
          stage.attempts = static_cast<uint32_t>(jobs->Int(5));
        }
        if (times_read) continue;
        times.Add(NewestTimes::Of::kName, jobs->Text(1), jobs->Int(0));
        times.Add(NewestTimes::Of::kRun, jobs->Text(2), jobs->Int(0));
        in_order = in_order && last < jobs->Text(3);
        last = jobs->Text(3);
      }
      if (in_order) break;
    }
    if (times_read) return Ok();
    ATHANOR_TRY(auto* keys, connection.Prepare("SELECT created, key FROM keys"));
    for (;;) {
      ATHANOR_TRY(const bool row, keys->Step());
      if (!row) return Ok();
      times.Add(NewestTimes::Of::kKey, keys->Text(1), keys->Int(0));
    }
  }));
  times_read = true;
  return Ok();
}

Status JobStore::Parts::Write(const JobBatch& batch) {
  const std::vector<JobId> fresh = FreshJobs(batch);
  ATHANOR_CHECK_OK(ReadTimes());
  return database.Write([&](Connection& connection) -> Status {
    // The newest last, whatever the order of the batch.
    std::vector<const JobRecord*> records;
    for (const auto& record : batch.records) records.push_back(&record);
    std::ranges::stable_sort(records, {}, [](const auto* record) { return record->id; });
    for (const auto* record : records) {
      const bool is_new = std::ranges::binary_search(fresh, record->id);
      ATHANOR_CHECK_OK(PutRecord(connection, *record, is_new, times));
    }
    for (const auto& event : batch.events) ATHANOR_CHECK_OK(PutEvent(connection, event));
    for (const auto& effect : batch.effects) ATHANOR_CHECK_OK(PutEffect(connection, effect));
    for (const uint64_t id : batch.performed) {
      ATHANOR_TRY(auto* statement, connection.Prepare("DELETE FROM outbox WHERE id = ?1"));
      statement->Bind(1, static_cast<int64_t>(id));
      ATHANOR_CHECK_OK(statement->Step());
    }
    for (const JobId id : batch.forget) {
      ATHANOR_TRY(auto* statement, connection.Prepare("DELETE FROM jobs WHERE id = ?1"));
      statement->Bind(1, id.ToString());
      ATHANOR_CHECK_OK(statement->Step());
    }
    return Ok();
  });
}

Status JobStore::Commit(const JobBatch& batch) {
  if (batch.empty()) return Ok();
  while (true) {
    auto written = parts_->Write(batch);
    if (!parts_->reserve) return written;
    if (written.ok()) {
      parts_->Tell(false);
      parts_->reserve->Refill();
      return written;
    }
    if (written.error().code != ErrorCode::kExhausted) return written;
    if (parts_->reserve->Release()) continue;
    parts_->Tell(true);
    if (!parts_->Pause()) return written;
  }
}

void JobStore::WaitForRoom(const std::string& reserve, std::function<void(bool full)> told) {
  parts_->reserve = std::make_unique<DiskReserve>(reserve, kReserveBytes);
  parts_->told = std::move(told);
}

uint64_t JobStore::waits_for_bytes() const {
  return parts_->waiting ? DiskReserve::kTimes * kReserveBytes : 0;
}

void JobStore::GiveUpWaiting() {
  {
    const MutexLock lock(parts_->mutex);
    parts_->given_up = true;
  }
  parts_->wake.notify_all();
}

Result<JobRecord> JobStore::Find(JobId id) const {
  const std::string text = id.ToString();
  std::string json;
  bool found = false;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare("SELECT json FROM records WHERE job = ?1"));
    statement->Bind(1, text);
    ATHANOR_TRY(found, statement->Step());
    if (found) json = statement->Text(0);
    return Ok();
  }));
  if (!found) {
    return Fail(Error{ErrorCode::kNotFound, "no job " + text, "ath ps -a"}.Id("ATH-R0001"));
  }
  return ParseRecord(text, json);
}

Status JobStore::ForEach(const std::function<Status(const JobRecord&)>& visit) const {
  constexpr int64_t kPage = 200;
  std::string after;
  while (true) {
    std::vector<std::pair<std::string, std::string>> page;
    ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* statement, connection.Prepare("SELECT job, json FROM records "
                                                      "WHERE job > ?1 ORDER BY job LIMIT ?2"));
      statement->Bind(1, after);
      statement->Bind(2, kPage);
      while (true) {
        ATHANOR_TRY(const bool row, statement->Step());
        if (!row) return Ok();
        page.emplace_back(statement->Text(0), statement->Text(1));
      }
    }));
    if (page.empty()) return Ok();
    for (const auto& [id, json] : page) {
      ATHANOR_TRY(const auto record, ParseRecord(id, json));
      ATHANOR_CHECK_OK(visit(record));
    }
    after = page.back().first;
  }
}

Result<std::optional<JobStore::KeyHit>> JobStore::FindKey(std::string_view key) const {
  std::optional<KeyHit> hit;
  // Most keys are new, which is known without a look at the store.
  ATHANOR_TRY(const auto created, parts_->When(NewestTimes::Of::kKey, key));
  if (!created) return hit;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(hit, KeyIn(connection, key));
    return Ok();
  }));
  return hit;
}

Result<std::optional<JobId>> JobStore::FindSameRun(std::string_view hash) const {
  std::optional<JobId> found;
  ATHANOR_TRY(const auto created, parts_->When(NewestTimes::Of::kRun, hash));
  if (!created) return found;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(const auto* row,
                NewestRow(connection, hash, *created,
                          "SELECT id FROM jobs WHERE created = ?2 AND same_hash = ?1 "
                          "ORDER BY id DESC LIMIT 1",
                          "SELECT id FROM jobs WHERE same_hash = ?1 "
                          "ORDER BY id DESC LIMIT 1"));
    if (row == nullptr) return Ok();
    ATHANOR_TRY(found, JobIdIn(*row, 0));
    return Ok();
  }));
  return found;
}

Result<JobId> JobStore::Resolve(std::string_view reference) const {
  JobId id;
  ATHANOR_TRY(const auto named, parts_->When(NewestTimes::Of::kName, reference));
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(id, ResolveReference(connection, reference, named));
    return Ok();
  }));
  return id;
}

Status JobStore::EachLive(const std::function<void(JobRecord&&)>& visit) const {
  return parts_->database.Read([&](Connection& connection) -> Status {
    std::vector<JobId> live;
    ATHANOR_TRY(auto* ids, connection.Prepare("SELECT id FROM jobs INDEXED BY jobs_live "
                                              "WHERE live = 1"));
    ATHANOR_CHECK_OK(Collect(*ids, live, [](const Statement& row) { return JobIdIn(row, 0); }));
    std::ranges::sort(live);
    ATHANOR_TRY(auto* last, connection.Prepare("SELECT max(rowid) FROM records"));
    ATHANOR_CHECK_OK(last->Step());
    const auto all = static_cast<size_t>(last->Int(0));
    last->Reset();
    const auto give = [&](std::string_view id, std::string_view json) -> Status {
      auto record = ParseRecord(id, json);
      if (!record) return tl::unexpected(record.error());
      visit(std::move(*record));
      return Ok();
    };
    if (live.size() < all / 4) {
      ATHANOR_TRY(auto* one, connection.Prepare("SELECT json FROM records WHERE job = ?1"));
      for (const JobId id : live) {
        const std::string text = id.ToString();
        one->Bind(1, std::string_view(text));
        ATHANOR_TRY(const bool row, one->Step());
        if (row) ATHANOR_CHECK_OK(give(text, one->Text(0)));
        one->Reset();
      }
      return Ok();
    }
    // Going through all of them in table order is cheaper than that many lookups. That is the order
    // of ids, except for jobs that were imported, or that came while the clock was set back.
    ATHANOR_TRY(auto* rows, connection.Prepare("SELECT job, json FROM records ORDER BY rowid"));
    for (size_t next = 0;;) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      ATHANOR_TRY(const JobId id, JobIdIn(*rows, 0));
      if (next < live.size() && live[next] == id) {
        ++next;
      } else if (!std::ranges::binary_search(live, id)) {
        continue;
      }
      ATHANOR_CHECK_OK(give(rows->Text(0), rows->Text(1)));
    }
  });
}

Result<std::vector<JobRecord>> JobStore::Live() const {
  std::vector<JobRecord> records;
  ATHANOR_CHECK_OK(EachLive([&](JobRecord&& record) { records.push_back(std::move(record)); }));
  std::ranges::sort(records, {}, &JobRecord::id);
  return records;
}

Result<std::vector<Effect>> JobStore::Outbox() const {
  std::vector<Effect> effects;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("SELECT id, kind, job, attempt FROM outbox ORDER BY id"));
    return Collect(*statement, effects, EffectIn);
  }));
  return effects;
}

Result<std::vector<JobStage>> JobStore::Stages() const {
  std::vector<JobStage> stages;
  ATHANOR_CHECK_OK(parts_->ReadTimes(&stages));
  return stages;
}

Result<std::vector<JobSummary>> JobStore::List(const JobQuery& query) const {
  std::vector<JobSummary> jobs;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare(ListSql(query)));
    BindQuery(*statement, query);
    statement->Bind(2, Clamped(query.limit));
    return Collect(*statement, jobs, SummaryIn);
  }));
  return jobs;
}

Result<uint64_t> JobStore::CountOf(JobQuery query) const {
  query.before.reset();
  uint64_t count = 0;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare("SELECT count(*) " + FromSql(query)));
    BindQuery(*statement, query);
    ATHANOR_TRY(const bool row, statement->Step());
    if (row) count = static_cast<uint64_t>(statement->Int(0));
    return Ok();
  }));
  return count;
}

Result<std::vector<StoredEvent>> JobStore::Events(JobId id, uint64_t after, size_t limit) const {
  std::vector<StoredEvent> events;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare(std::string(kEventColumns) +
                                   " WHERE job = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"));
    statement->Bind(1, id.ToString());
    statement->Bind(2, Clamped(after));
    statement->Bind(3, Clamped(limit));
    return Collect(*statement, events, EventIn);
  }));
  return events;
}

Result<std::vector<StoredEvent>> JobStore::EventsAfter(uint64_t& position, size_t limit,
                                                       std::vector<uint64_t>* positions) const {
  std::vector<StoredEvent> events;
  uint64_t last = position;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare(std::string(kEventColumns) +
                                   " WHERE position > ?1 ORDER BY position LIMIT ?2"));
    statement->Bind(1, Clamped(position));
    statement->Bind(2, Clamped(limit));
    return Collect(*statement, events, [&](const Statement& row) {
      last = static_cast<uint64_t>(row.Int(0));
      if (positions) positions->push_back(last);
      return EventIn(row);
    });
  }));
  position = last;
  return events;
}

Result<uint64_t> JobStore::LastEventPosition() const {
  uint64_t position = 0;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    // Not max(position): it would decrease when the newest job is removed.
    ATHANOR_TRY(auto* statement,
                connection.Prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'"));
    ATHANOR_TRY(const bool row, statement->Step());
    if (row) position = static_cast<uint64_t>(statement->Int(0));
    return Ok();
  }));
  return position;
}

Result<JobStore::Counts> JobStore::Count() const {
  Counts counts;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(
        auto* statement,
        connection.Prepare("SELECT state, count(*) FROM jobs WHERE live = 0 GROUP BY state "
                           "UNION ALL "
                           "SELECT state, count(*) FROM jobs WHERE live = 1 GROUP BY state"));
    ATHANOR_CHECK_OK(Collect(*statement, counts.by_state,
                             [](const Statement& row) -> Result<std::pair<JobState, uint64_t>> {
                               ATHANOR_TRY(const JobState state, StateIn(row, 0));
                               return std::pair(state, static_cast<uint64_t>(row.Int(1)));
                             }));
    std::ranges::sort(counts.by_state);
    for (const auto& [state, count] : counts.by_state) counts.jobs += count;
    return Ok();
  }));
  return counts;
}

}  // namespace athanor
