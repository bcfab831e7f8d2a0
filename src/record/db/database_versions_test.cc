// What users have on their disks: db/versions/vN.sql is a store as the program of schema
// version N left it. Each must open, migrate and read; none may ever be edited, nor may
// the migrations that led to it.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/io/hash.h"
#include "record/db/database.h"
#include "record/db/fault_vfs.h"
#include "record/jobs/loss_store.h"
#include "record/keys/token_store.h"
#include "record/runs/run_store.h"
#include "record/runs/run_testing.h"
#include "record/studies/study_store.h"
#include "record/testing.h"

namespace athanor {
namespace {

// Of each migration's text. A new one is added here with its fixture; an old one stays.
const std::map<int, std::string> kPinned = {
    {1, "60524acbf05fe070a279e4d4c3237959cc0e9ecda728a63e4abd9a97607a7fb8"},
    {2, "41548feb610e6ee61246f6f1a18348fac017e9e397f557896d052dfd331faf00"},
    {3, "f09c9b43feb0a3077420a27108a8932807a3841ce957b5bcc1fd9eb9a80a70d7"},
    {4, "a8061f93fc43a03eee949f0d176facd64cd68ec3c8ad42f7cd2ffd646403eb23"},
    {5, "0f2648539c0bf416030a5dff6cc4ee2039afdd1ba65d3832a2e914210314ae24"},
    {6, "f0b2899f5198e4226b61fc87426be789505b6386858c0c10ef7b24a52ebcd5c8"},
    {7, "a364ae8d02a589107ad98caded330d39518aadf50b79bcd5db0e5469f3754579"},
};

int Newest() { return ServerMigrations().back().version; }

void MakeStoreOf(int version, const std::string& path) {
  const auto sql =
      ReadFile(std::string(ATHANOR_SCHEMA_VERSIONS) + "/v" + std::to_string(version) + ".sql");
  ASSERT_TRUE(sql) << "a schema version without a store in db/versions: " << version;
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  char* why = nullptr;
  EXPECT_EQ(sqlite3_exec(handle, sql->c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
  EXPECT_EQ(sqlite3_exec(handle, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_close(handle), SQLITE_OK);
}

int64_t Number(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  const int64_t value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(handle);
  return value;
}

// The jobs that every fixture so far holds.
void ExpectTheJobs(Database& database) {
  JobStore jobs(database);
  const auto listed = jobs.List({});
  ASSERT_TRUE(listed) << listed.error().what;
  ASSERT_EQ(listed->size(), 4u);
  const auto done = jobs.Resolve("quiet-lamp");
  ASSERT_TRUE(done) << done.error().what;
  const auto record = jobs.Find(*done);
  ASSERT_TRUE(record) << record.error().what << ": " << record.error().why;
  EXPECT_EQ(record->state, JobState::kCompleted);
  EXPECT_EQ(record->spec.command, (std::vector<std::string>{"python3", "train.py"}));
  EXPECT_EQ(record->attempts.size(), 1u);
  const auto key = jobs.FindKey("first");
  ASSERT_TRUE(key && *key);
  EXPECT_EQ((*key)->id, *done);
  const auto events = jobs.Events(*done, 0, 100);
  ASSERT_TRUE(events);
  EXPECT_EQ(events->size(), record->event_seq);
  const auto live = jobs.Live();
  ASSERT_TRUE(live) << live.error().what;
  EXPECT_EQ(live->size(), 2u);
  // It ran when there were no hosts yet.
  for (const auto& attempt : record->attempts) {
    ASSERT_EQ(attempt.hosts.size(), 1u);
    EXPECT_EQ(attempt.hosts[0].placement, attempt.placement);
    EXPECT_EQ(attempt.hosts[0].over, attempt.ended);
    EXPECT_EQ(attempt.hosts[0].exit, attempt.exit);
  }
  const auto outbox = jobs.Outbox();
  ASSERT_TRUE(outbox) << outbox.error().what;
  EXPECT_EQ(outbox->size(), 1u);
  EXPECT_EQ(jobs.LastEventPosition(), 20u);
  const auto tokens = TokenStore(database).List();
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->size(), 1u);
}

// In a store that may be written to.
void ExpectAKeyIsTaken(Database& database) {
  JobStore jobs(database);
  auto twin = SubmitOf(SampleJob(7));
  twin.records.front().key = "first";
  EXPECT_EQ(jobs.Commit(twin).error().code, ErrorCode::kConflict) << "the key has a job";
}

// Planted bug: change one letter of migration 1, and stores made before differ from those
// made after, though both say version 1.
TEST(SchemaVersions, AReleasedMigrationIsNeverEdited) {
  int expected = 1;
  for (const Migration& migration : ServerMigrations()) {
    EXPECT_EQ(migration.version, expected++);
    const auto pinned = kPinned.find(migration.version);
    ASSERT_NE(pinned, kPinned.end())
        << "pin version " << migration.version << " as " << Sha256Hex(migration.sql);
    EXPECT_EQ(Sha256Hex(migration.sql), pinned->second) << "version " << migration.version;
  }
}

TEST(SchemaVersions, EveryReleasedOneIsMigratedAndRead) {
  for (int version = 1; version <= Newest(); ++version) {
    SCOPED_TRACE(version);
    const ScratchDir dir;
    MakeStoreOf(version, dir / "a.db");
    auto database = Database::Open(dir / "a.db", ServerMigrations());
    ASSERT_TRUE(database) << database.error().what << ": " << database.error().why;
    ExpectTheJobs(**database);
    ExpectAKeyIsTaken(**database);
    EXPECT_TRUE(LossStore(**database).Add("local", true, 1, true).ok());
    const auto runs = LoadAll(RunStore(**database));
    ASSERT_TRUE(runs) << runs.error().what;
    EXPECT_EQ(runs->experiments.front().name, "Default");
    EXPECT_EQ(runs->runs.size(), version >= 4 ? 1u : 0u);
    EXPECT_EQ(runs->labels.size(), version >= 4 ? 3u : 0u);
    const auto studies = StudyStore(**database).List();
    ASSERT_TRUE(studies) << studies.error().what;
    EXPECT_EQ(studies->size(), version >= 5 ? 1u : 0u);
    JobStore jobs(**database);
    EXPECT_TRUE(jobs.Commit(SubmitOf(SampleJob(1))).ok());
    // Opened at the same time, as fsck and backups do.
    auto looked = Database::OpenToLook(dir / "a.db", ServerMigrations());
    ASSERT_TRUE(looked) << looked.error().what;
    EXPECT_EQ(JobStore(**looked).Count()->jobs, 5u);
  }
}

// Planted bug: leave KeepCopy out, or copy the file without its log.
TEST(SchemaVersions, AnOlderStoreIsKeptBesideTheMigratedOneAndThatIsSaid) {
  const ScratchDir dir;
  MakeStoreOf(1, dir / "a.db");
  auto database = Database::Open(dir / "a.db", ServerMigrations());
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_NE((*database)->notice().find(dir / "a.db.v1"), std::string::npos)
      << (*database)->notice();
  EXPECT_EQ(Number(dir / "a.db.v1", "PRAGMA user_version"), 1);
  EXPECT_EQ(Number(dir / "a.db.v1", "SELECT count(*) FROM jobs"), 4);
  EXPECT_FALSE(Exists(dir / "a.db.v1.partial"));
  database->reset();
  auto again = Database::Open(dir / "a.db", ServerMigrations());
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->notice(), "");
}

TEST(SchemaVersions, ANewStoreNeedsNoCopy) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", ServerMigrations());
  ASSERT_TRUE(database);
  EXPECT_EQ((*database)->notice(), "");
  EXPECT_FALSE(Exists(dir / "a.db.v0"));
}

TEST(SchemaVersions, ANewerStoreIsRefusedAlsoToLookAt) {
  const ScratchDir dir;
  { ASSERT_NE(OpenStore(dir / "a.db"), nullptr); }
  auto older = Database::OpenToLook(dir / "a.db", ServerMigrations().first(1));
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, ErrorCode::kConflict);
  EXPECT_NE(
      older.error().why.find("version " + std::to_string(Newest()) + ", this program knows 1"),
      std::string::npos)
      << older.error().why;
  EXPECT_FALSE(older.error().hint.empty());
}

TEST(SchemaVersions, LookingChangesNothingAndCannotWrite) {
  const ScratchDir dir;
  MakeStoreOf(1, dir / "a.db");
  const auto before = ReadFile(dir / "a.db");
  {
    auto looked = Database::OpenToLook(dir / "a.db", ServerMigrations());
    ASSERT_TRUE(looked) << looked.error().what;
    ExpectTheJobs(**looked);
    const Status written = (*looked)->Write([](Connection&) { return Ok(); });
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::kDenied);
  }
  EXPECT_EQ(ReadFile(dir / "a.db"), before);
  EXPECT_EQ(Database::OpenToLook(dir / "none.db", ServerMigrations()).error().code,
            ErrorCode::kNotFound);
}

// Planted bug: run each migration in its own transaction and set the version after them, and some
// kill leaves tables of version 2 in a file that says 1.
TEST(SchemaVersions, AMigrationKilledAnywhereLeavesTheOldOrTheNewVersion) {
  bool killed = true;
  int nth = 0;
  for (; killed; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 2000);
    const ScratchDir dir;
    MakeStoreOf(1, dir / "a.db");
    const pid_t child = ::fork();
    if (child == 0) {
      FaultVfs vfs;
      vfs.FailAt(nth, FaultVfs::Fault::kKill, true);
      const bool opened = Database::Open(dir / "a.db", ServerMigrations()).has_value();
      ::_exit(opened ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed = WIFSIGNALED(status);
    if (!killed) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
    }
    const int64_t version = Number(dir / "a.db", "PRAGMA user_version");
    const int64_t tables =
        Number(dir / "a.db", "SELECT count(*) FROM sqlite_master WHERE name = 'type_losses'");
    EXPECT_EQ(tables, version == Newest() ? 1 : 0);
    EXPECT_TRUE(version == 1 || version == Newest()) << version;
    auto database = Database::Open(dir / "a.db", ServerMigrations());
    ASSERT_TRUE(database) << database.error().what << ": " << database.error().why;
    ExpectTheJobs(**database);
    EXPECT_EQ(Number(dir / "a.db.v1", "PRAGMA user_version"), 1);
  }
  EXPECT_GT(nth, 5) << "nothing was killed";
}

// Planted bug: leave out the fsync of the log at the commit (synchronous=NORMAL).
TEST(SchemaVersions, APowerCutDuringAMigrationLeavesTheOldOrTheNewVersion) {
  bool reached = true;
  for (int nth = 0; reached; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 2000);
    const ScratchDir dir;
    MakeStoreOf(1, dir / "a.db");
    FaultVfs vfs;
    vfs.FailAt(nth, FaultVfs::Fault::kIoError, true);
    (void)Database::Open(dir / "a.db", ServerMigrations());
    reached = vfs.failed();
    vfs.CutPower();
    vfs.Heal();
    auto database = Database::Open(dir / "a.db", ServerMigrations());
    ASSERT_TRUE(database) << database.error().what << ": " << database.error().why;
    ExpectTheJobs(**database);
  }
}

}  // namespace
}  // namespace athanor
