// What must survive: a failing disk, a power cut and kill -9. Whatever happens, the
// store opens again, every acknowledged job is there once, and nothing is half there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>

#include "base/io/fd.h"
#include "base/text/text.h"
#include "record/db/fault_vfs.h"
#include "record/testing.h"

namespace athanor {
namespace {

constexpr size_t kTurns = 4;

int64_t Number(const Database& database, std::string_view sql) {
  int64_t value = -1;
  const Status read = database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare(sql));
    ATHANOR_TRY(const bool row, statement->Step());
    if (row) value = statement->Int(0);
    return Ok();
  });
  EXPECT_TRUE(read.ok()) << read.error().what << ": " << read.error().why;
  return value;
}

// Every job has its record, its key and an unbroken row of events, and nothing else exists.
void ExpectConsistent(const Database& database) {
  const int64_t jobs = Number(database, "SELECT count(*) FROM jobs");
  EXPECT_EQ(Number(database, "SELECT count(*) FROM jobs JOIN records ON job = id"), jobs);
  EXPECT_EQ(Number(database, "SELECT count(*) FROM jobs JOIN keys ON job = id"), jobs);
  EXPECT_EQ(Number(database, "SELECT count(*) FROM records"), jobs);
  EXPECT_EQ(Number(database, "SELECT count(*) FROM keys"), jobs);
  EXPECT_EQ(Number(database, "SELECT count(DISTINCT job) FROM events"), jobs);
  EXPECT_EQ(Number(database,
                   "SELECT count(*) FROM (SELECT 1 FROM events GROUP BY job "
                   "HAVING min(seq) <> 1 OR max(seq) <> count(*))"),
            0);
  EXPECT_EQ(Number(database,
                   "SELECT count(*) FROM records JOIN (SELECT job, max(seq) AS last FROM events "
                   "GROUP BY job) AS e ON e.job = records.job "
                   "WHERE json_extract(json, '$.event_seq') <> last"),
            0);
  EXPECT_EQ(Number(database, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
  EXPECT_EQ(Number(database,
                   "SELECT count(*) FROM pragma_integrity_check "
                   "WHERE integrity_check <> 'ok'"),
            0);
}

// A new job, and the one before it moves on: the shape of a busy turn.
JobBatch Turn(int number, std::vector<JobRecord>& jobs) {
  JobBatch batch;
  if (!jobs.empty()) {
    JobRecord& previous = jobs.back();
    previous.state = JobState::kPlacing;
    previous.event_seq = 2;
    Attempt attempt;
    attempt.id = AttemptId::New();
    previous.attempts = {attempt};
    batch.records.push_back(previous);
    batch.events.push_back(SampleEvent(previous, 2, "placed"));
    batch.effects.push_back(
        {static_cast<uint64_t>(number), EffectKind::kLaunch, previous.id, attempt.id});
  }
  jobs.push_back(SampleJob(number));
  batch.records.push_back(jobs.back());
  batch.events.push_back(SampleEvent(jobs.back(), 1, "submitted"));
  return batch;
}

// Commits turns until one fails; returns the ids that were acknowledged.
std::vector<JobId> CommitUntilFailure(JobStore& store) {
  std::vector<JobId> acknowledged;
  std::vector<JobRecord> jobs;
  for (size_t i = 0; i < kTurns; ++i) {
    if (!store.Commit(Turn(static_cast<int>(i), jobs)).ok()) break;
    acknowledged.push_back(jobs.back().id);
  }
  return acknowledged;
}

void ExpectAllThere(const JobStore& store, const std::vector<JobId>& acknowledged) {
  for (const JobId id : acknowledged) {
    const auto found = store.Find(id);
    ASSERT_TRUE(found) << id.ToString() << ": " << found.error().what;
    EXPECT_EQ(found->id, id);
  }
}

void FailEachChange(FaultVfs::Fault fault, bool forever) {
  bool reached = true;
  for (int nth = 0; reached; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 2000);
    const ScratchDir dir;
    FaultVfs vfs;
    std::vector<JobId> acknowledged;
    {
      auto database = OpenStore(dir / "a.db");
      ASSERT_NE(database, nullptr);
      JobStore store(*database);
      vfs.FailAt(nth, fault, forever);
      acknowledged = CommitUntilFailure(store);
      EXPECT_EQ(acknowledged.size() < kTurns, vfs.failed());
      if (!forever && vfs.failed()) {
        // The same connection must still be usable, and see nothing of the failed turn.
        ExpectConsistent(*database);
        const auto next = SampleJob(100);
        ASSERT_TRUE(store.Commit(SubmitOf(next)).ok());
        acknowledged.push_back(next.id);
      }
    }
    // Closing writes too: it moves the log into the file.
    reached = vfs.failed();
    vfs.Heal();
    auto database = OpenStore(dir / "a.db");
    ASSERT_NE(database, nullptr);
    ExpectConsistent(*database);
    ExpectAllThere(JobStore(*database), acknowledged);
  }
}

// Planted bug for the three loops: write the event (or the key) outside the transaction of
// its record; or ignore the result of COMMIT.
TEST(JobStoreFaults, AnyWriteMayFailOnceWithAFullDisk) {
  FailEachChange(FaultVfs::Fault::kFull, false);
}
TEST(JobStoreFaults, AnyWriteMayFailOnceWithADiskError) {
  FailEachChange(FaultVfs::Fault::kIoError, false);
}
TEST(JobStoreFaults, TheDiskMayDieAtAnyWrite) { FailEachChange(FaultVfs::Fault::kIoError, true); }

// Planted bug: synchronous=NORMAL. No kill and no failing write shows it; this loses the jobs
// that were acknowledged since the last checkpoint.
TEST(JobStoreFaults, AnAcknowledgedJobSurvivesAPowerCutAtAnyWrite) {
  bool reached = true;
  for (int nth = 0; reached; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_LT(nth, 2000);
    const ScratchDir dir;
    FaultVfs vfs;
    std::vector<JobId> acknowledged;
    {
      auto database = OpenStore(dir / "a.db");
      ASSERT_NE(database, nullptr);
      JobStore store(*database);
      vfs.FailAt(nth, FaultVfs::Fault::kIoError, true);
      acknowledged = CommitUntilFailure(store);
    }
    reached = vfs.failed();
    vfs.CutPower();
    vfs.Heal();
    auto database = OpenStore(dir / "a.db");
    ASSERT_NE(database, nullptr);
    ExpectConsistent(*database);
    ExpectAllThere(JobStore(*database), acknowledged);
  }
}

// The child: submits for ever, and says each id only after its commit returned.
[[noreturn]] void SubmitForEver(const std::string& path, int pipe, unsigned seed) {
  auto database = Database::Open(path, ServerMigrations());
  if (!database) ::_exit(1);
  JobStore store(**database);
  std::mt19937 random(seed);
  for (int number = 0;;) {
    JobBatch batch;
    std::string said;
    for (auto left = 1 + random() % 8; left > 0; --left) {
      const auto record = SampleJob(number++);
      batch.records.push_back(record);
      batch.events.push_back(SampleEvent(record, 1, "submitted"));
      said += record.id.ToString() + "\n";
    }
    if (!store.Commit(batch).ok()) ::_exit(2);
    if (!WriteAll(pipe, said).ok()) ::_exit(3);
  }
}

std::vector<JobId> WholeLines(const std::string& text) {
  std::vector<JobId> ids;
  const auto lines = Split(text, '\n');
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const auto id = JobId::Parse(lines[i]);
    EXPECT_TRUE(id) << lines[i];
    if (id) ids.push_back(*id);
  }
  return ids;
}

// Planted bug: run the body of a commit without BEGIN and COMMIT (half a batch stays), or
// say the ids before Commit (lost ones).
TEST(JobStoreFaults, AnAcknowledgedJobSurvivesKillNineAndIsThereOnce) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const ScratchDir dir;
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) SubmitForEver(dir / "a.db", ends[1], seed);
    ::close(ends[1]);
    const UniqueFd said_end(ends[0]);

    std::mt19937 random(seed);
    const size_t enough = 27 * (1 + random() % 300);
    std::string said;
    char buffer[4096];
    while (said.size() < enough) {
      const ssize_t got = ::read(said_end.get(), buffer, sizeof(buffer));
      ASSERT_GT(got, 0);
      said.append(buffer, static_cast<size_t>(got));
    }
    // Only moves the moment of the kill to somewhere inside a commit; nothing waits for it.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    auto rest = ReadAll(said_end.get());
    ASSERT_TRUE(rest);
    said += *rest;
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const auto acknowledged = WholeLines(said);
    EXPECT_EQ(std::set(acknowledged.begin(), acknowledged.end()).size(), acknowledged.size());
    auto database = OpenStore(dir / "a.db");
    ASSERT_NE(database, nullptr);
    ExpectConsistent(*database);
    ExpectAllThere(JobStore(*database), acknowledged);
  }
}

}  // namespace
}  // namespace athanor
