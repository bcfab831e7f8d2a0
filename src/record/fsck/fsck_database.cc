// The database: SQLite's own checks, then what must hold between its tables.
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "record/db/database.h"
#include "record/fsck/checker.h"
#include "record/jobs/job_store.h"
#include "record/keys/secret_store.h"

namespace athanor {
namespace {

constexpr int kMostProblems = 20;  // of SQLite's own; the first ones say enough

Status EachRow(Connection& connection, std::string_view sql,
               const std::function<void(const Statement&)>& visit) {
  ATHANOR_TRY(auto* statement, connection.Prepare(sql));
  while (true) {
    ATHANOR_TRY(const bool row, statement->Step());
    if (!row) return Ok();
    visit(*statement);
  }
}

std::string NameOfJob(const JobRecord& record) {
  return fmt::format("{} ({})", record.id.ToString(), Printable(record.spec.name));
}

WallTime FirstStart(const JobRecord& record) {
  for (const auto& attempt : record.attempts) {
    if (attempt.started.ms != 0) return attempt.started;
  }
  return {};
}

}  // namespace

Status Checker::CheckDatabase() {
  CheckLogOf(layout_.database());
  ATHANOR_CHECK_OK(CheckPagesOf(layout_.database(), ServerMigrations()));
  auto opened = Database::OpenToLook(layout_.database(), ServerMigrations());
  if (!opened) {
    if (opened.error().code != ErrorCode::kCorrupt) return tl::unexpected(opened.error());
    Add("database", opened.error().what, opened.error().why, kRestore, layout_.database());
    return Ok();
  }
  Database& database = **opened;
  for (const auto check : {&Checker::CheckIntegrity, &Checker::CheckJobs, &Checker::CheckEvents,
                           &Checker::CheckOutbox, &Checker::CheckKeys, &Checker::CheckSecrets}) {
    auto done = (this->*check)(database);
    if (done.ok()) continue;
    if (done.error().code != ErrorCode::kCorrupt) return done;
    Add("database", "a part of the store cannot be read: " + done.error().what, done.error().why,
        kRestore, layout_.database());
  }
  opened->reset();
  if (options_.repair) MendDatabase();
  return Ok();
}

Status Checker::CheckIntegrity(Database& database) {
  return database.Read([&](Connection& connection) -> Status {
    ATHANOR_CHECK_OK(EachRow(connection, "PRAGMA user_version",
                             [&](const Statement& row) { report_.version = row.Int(0); }));
    ATHANOR_CHECK_OK(EachRow(connection, fmt::format("PRAGMA integrity_check({})", kMostProblems),
                             [&](const Statement& row) {
                               if (row.Text(0) == "ok") return;
                               Add("database", "the file of the store is damaged",
                                   Printable(row.Text(0)), kRestore, layout_.database());
                             }));
    std::map<std::string, uint64_t> strays;
    ATHANOR_CHECK_OK(EachRow(connection, "PRAGMA foreign_key_check",
                             [&](const Statement& row) { ++strays[std::string(row.Text(0))]; }));
    strays.erase("outbox");  // CheckOutbox reports each of them
    for (const auto& [table, count] : strays) {
      Add("database", fmt::format("{} rows of table {} belong to no job", count, table),
          "PRAGMA foreign_key_check", kRestore, layout_.database());
    }
    return Ok();
  });
}

void Checker::CheckColumns(const JobRecord& record, const Statement& row) {
  std::vector<std::string> wrong;
  const auto text = [&](int column, const char* name, std::string_view right) {
    if (row.Text(column) != right) wrong.push_back(name);
  };
  const auto number = [&](int column, const char* name, int64_t right) {
    if (row.Int(column) != right) wrong.push_back(name);
  };
  text(1, "name", record.spec.name);
  text(2, "experiment", record.spec.experiment);
  text(3, "owner", record.user);
  text(4, "state", NameOf(record.state));
  number(5, "live", IsTerminal(record.state) ? 0 : 1);
  number(6, "created", record.created.ms);
  number(7, "started", FirstStart(record).ms);
  number(8, "ended", record.ended.ms);
  text(9, "cause_kind", record.cause.kind);
  text(10, "type", record.spec.resources.type);
  number(11, "attempts", static_cast<int64_t>(record.attempts.size()));
  number(12, "simulated", record.simulated ? 1 : 0);
  if (wrong.empty()) return;
  // The creation time is part of the row's key and of its position in lists: we must not change it.
  const bool mendable = wrong.front() != "created" || wrong.size() > 1;
  Add("job", fmt::format("the list does not say of job {} what its record does", NameOfJob(record)),
      "columns: " + Join(wrong, ", "), mendable ? kRepair : kRestore, layout_.database());
  if (mendable) mend_columns_.push_back(record);
}

void Checker::CheckRecord(const JobRecord& record) {
  std::string why;
  if (IsTerminal(record.state) && record.ended.ms == 0) why = "it is over but has no end time";
  if (!IsTerminal(record.state) && record.ended.ms != 0) why = "it is live but has an end time";
  for (size_t i = 0; i < record.attempts.size(); ++i) {
    const Attempt& attempt = record.attempts[i];
    const bool newest = i + 1 == record.attempts.size();
    if (attempt.number != i + 1) {
      why = fmt::format("attempt {} has number {}", i + 1, attempt.number);
    }
    if (attempt.ended.ms == 0 && (!newest || IsTerminal(record.state))) {
      why = fmt::format("attempt {} never ended", attempt.number);
    }
    attempts_[attempt.id] = record.id;
    if (newest && !IsTerminal(record.state)) live_attempts_.insert(attempt.id);
  }
  if (!why.empty()) {
    Add("job", fmt::format("the record of job {} contradicts itself", NameOfJob(record)), why,
        kRestore, layout_.database());
  }
}

Status Checker::CheckJobs(Database& database) {
  Status read = database.Read([&](Connection& connection) -> Status {
    return EachRow(
        connection,
        "SELECT id, name, experiment, owner, state, live, created, started, ended, cause_kind, "
        "type, attempts, simulated, json FROM jobs LEFT JOIN records ON job = id "
        "ORDER BY created, id",
        [&](const Statement& row) {
          ++report_.jobs;
          const std::string id(row.Text(0));
          const auto job = JobId::Parse(id);
          if (job) jobs_.insert(*job);
          auto record = ParseJson(row.Text(13)).and_then([](const Json& json) {
            return RecordFromJson(json);
          });
          if (!job || !record || record->id != *job) {
            Add("job", fmt::format("the record of job {} cannot be read", Printable(id)),
                row.IsNull(13) ? "there is none"
                : record       ? "it is another job's"
                               : record.error().what,
                kRestore, layout_.database());
            return;
          }
          CheckColumns(*record, row);
          CheckRecord(*record);
          event_seq_[*job] = record->event_seq;
          states_[*job] = record->state;
          if (!record->key.empty()) keys_[*job] = {record->key, record->spec_hash};
          NameBlobs(*record);
        });
  });
  jobs_known_ = read.ok() && ReadRuns(database).ok();
  return read;
}

// Runs that are not jobs have their own series. An older store has none.
Status Checker::ReadRuns(Database& database) {
  return database.Read([&](Connection& connection) -> Status {
    bool there = false;
    ATHANOR_CHECK_OK(EachRow(connection, "SELECT 1 FROM sqlite_master WHERE name = 'runs'",
                             [&](const Statement&) { there = true; }));
    if (!there) return Ok();
    return EachRow(connection, "SELECT id FROM runs", [&](const Statement& row) {
      if (const auto run = JobId::Parse(row.Text(0))) runs_.insert(*run);
    });
  });
}

Status Checker::CheckEvents(Database& database) {
  std::set<JobId> seen;
  ATHANOR_CHECK_OK(database.Read([&](Connection& connection) -> Status {
    ATHANOR_CHECK_OK(EachRow(
        connection,
        "SELECT job, count(*), min(seq), max(seq), "
        "(SELECT state FROM events l WHERE l.job = e.job ORDER BY seq DESC LIMIT 1) "
        "FROM events e GROUP BY job",
        [&](const Statement& row) {
          const auto job = JobId::Parse(row.Text(0));
          report_.events += static_cast<uint64_t>(row.Int(1));
          if (!job || !event_seq_.contains(*job)) return;  // reported as a stray row
          seen.insert(*job);
          const auto told = static_cast<int64_t>(event_seq_[*job]);
          if (row.Int(2) != 1 || row.Int(3) != row.Int(1) || row.Int(3) != told) {
            Add("event", fmt::format("events of job {} are missing", job->ToString()),
                fmt::format("{} events, numbered {} to {}; the record counts {}", row.Int(1),
                            row.Int(2), row.Int(3), told),
                kRestore, layout_.database());
          } else if (row.Text(4) != NameOf(states_[*job])) {
            Add("event",
                fmt::format("the last event of job {} led to another state", job->ToString()),
                fmt::format("the event says {}, the record {}", Printable(row.Text(4)),
                            NameOf(states_[*job])),
                kRestore, layout_.database());
          }
        }));
    return EachRow(connection,
                   "SELECT job, seq FROM events WHERE cause <> '' AND NOT json_valid(cause)",
                   [&](const Statement& row) {
                     Add("event",
                         fmt::format("the cause of event {} of job {} cannot be read", row.Int(1),
                                     Printable(row.Text(0))),
                         "it is no JSON", kRestore, layout_.database());
                   });
  }));
  for (const auto& [job, told] : event_seq_) {
    if (told == 0 || seen.contains(job)) continue;
    Add("event", fmt::format("events of job {} are missing", job.ToString()),
        fmt::format("there are none; the record counts {}", told), kRestore, layout_.database());
  }
  return Ok();
}

Status Checker::CheckOutbox(Database& database) {
  return database.Read([&](Connection& connection) -> Status {
    return EachRow(
        connection, "SELECT id, kind, job, attempt FROM outbox ORDER BY id",
        [&](const Statement& row) {
          const auto job = JobId::Parse(row.Text(2));
          const auto attempt = AttemptId::Parse(row.Text(3));
          // Its folder may exist until the effect has been performed.
          if (attempt) live_attempts_.insert(*attempt);
          if (!jobs_known_ || (job && jobs_.contains(*job))) return;
          Add("outbox",
              fmt::format("an effect is kept for job {}, which is gone", Printable(row.Text(2))),
              fmt::format("number {}: {}", row.Int(0), Printable(row.Text(1))), kRepair,
              layout_.database());
          mend_outbox_.push_back(row.Int(0));
        });
  });
}

Status Checker::CheckKeys(Database& database) {
  std::set<JobId> seen;
  ATHANOR_CHECK_OK(database.Read([&](Connection& connection) -> Status {
    return EachRow(connection, "SELECT key, job, spec_hash FROM keys", [&](const Statement& row) {
      const auto job = JobId::Parse(row.Text(1));
      const auto right = job ? keys_.find(*job) : keys_.end();
      if (right == keys_.end()) return;  // a stray row, or a record that cannot be read
      seen.insert(*job);
      if (right->second.first == row.Text(0) && right->second.second == row.Text(2)) return;
      Add("key",
          fmt::format("the key of job {} is not the one it was accepted under", job->ToString()),
          fmt::format("{} instead of {}", Printable(row.Text(0)), Printable(right->second.first)),
          kRestore, layout_.database());
    });
  }));
  for (const auto& [job, key] : keys_) {
    if (seen.contains(job)) continue;
    Add("key", fmt::format("the key of job {} is missing", job.ToString()),
        "a repeated submit would make a second job: " + Printable(key.first), kRestore,
        layout_.database());
  }
  return Ok();
}

Status Checker::CheckSecrets(Database& database) {
  uint64_t kept = 0;
  ATHANOR_CHECK_OK(database.Read([&](Connection& connection) -> Status {
    return EachRow(connection, "SELECT count(*) FROM secrets",
                   [&](const Statement& row) { kept = static_cast<uint64_t>(row.Int(0)); });
  }));
  if (kept == 0) return Ok();
  // If there are secrets, opening makes no key: it reports what is wrong with the existing one.
  auto secrets = SecretStore::Open(database, layout_.secret_key());
  if (!secrets) {
    Add("secret", secrets.error().what, secrets.error().why,
        secrets.error().hint.empty() ? kRestore : secrets.error().hint, layout_.secret_key());
    return Ok();
  }
  ATHANOR_TRY(const auto names, (*secrets)->List());
  for (const auto& secret : names) {
    if (auto value = (*secrets)->Reveal(secret.name); !value) {
      Add("secret", fmt::format("secret {} cannot be opened", Printable(secret.name)),
          value.error().what, "ath secret set " + ShellQuote(secret.name), layout_.secret_key());
    }
  }
  return Ok();
}

void Checker::MendDatabase() {
  if (mend_columns_.empty() && mend_outbox_.empty()) return;
  const Status mended = [&]() -> Status {
    ATHANOR_TRY(auto database, Database::Open(layout_.database(), ServerMigrations()));
    JobBatch batch;
    batch.records = mend_columns_;
    for (const int64_t id : mend_outbox_) batch.performed.push_back(static_cast<uint64_t>(id));
    ATHANOR_CHECK_OK(JobStore(*database).Commit(batch));
    return database->Write([&](Connection& connection) -> Status {
      for (const auto& record : mend_columns_) {
        ATHANOR_TRY(auto* statement, connection.Prepare("UPDATE jobs SET name=?2, experiment=?3, "
                                                        "owner=?4, type=?5 WHERE id=?1"));
        statement->Bind(1, record.id.ToString());
        statement->Bind(2, record.spec.name);
        statement->Bind(3, record.spec.experiment);
        statement->Bind(4, record.user);
        statement->Bind(5, record.spec.resources.type);
        ATHANOR_CHECK_OK(statement->Step());
      }
      return Ok();
    });
  }();
  for (auto& finding : report_.findings) {
    if (finding.hint == kRepair && (finding.part == "job" || finding.part == "outbox")) {
      Settle(finding, mended);
    }
  }
}

}  // namespace athanor
