#include "record/db/database.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "record/db/fault_vfs.h"
#include "record/db/sqlite_connection.h"
#include "record/testing.h"

namespace athanor {
namespace {

constexpr Migration kFirst[] = {{1, "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)"}};
constexpr Migration kBoth[] = {{1, "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)"},
                               {2, "ALTER TABLE t ADD COLUMN z TEXT; UPDATE t SET z = y || '!'"}};

Status Insert(Connection& connection, int64_t x, std::string_view y) {
  ATHANOR_TRY(auto* statement, connection.Prepare("INSERT INTO t (x, y) VALUES (?1, ?2)"));
  statement->Bind(1, x);
  statement->Bind(2, y);
  ATHANOR_CHECK_OK(statement->Step());
  return Ok();
}

std::string One(const Database& database, const std::string& sql) {
  std::string value;
  const Status read = database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare(sql));
    ATHANOR_TRY(const bool row, statement->Step());
    if (row) value = statement->Text(0);
    return Ok();
  });
  EXPECT_TRUE(read.ok()) << read.error().what << ": " << read.error().why;
  return value;
}

TEST(Database, KeepsWhatWasWrittenInAPrivateFile) {
  const ScratchDir dir;
  {
    auto database = Database::Open(dir / "a.db", kFirst);
    ASSERT_TRUE(database) << database.error().what;
    ASSERT_TRUE((*database)->Write([](Connection& c) { return Insert(c, 1, "one"); }).ok());
    for (const char* name : {"a.db", "a.db-wal", "a.db-shm"}) {
      struct stat status {};
      ASSERT_EQ(::stat((dir / name).c_str(), &status), 0) << name;
      EXPECT_EQ(status.st_mode & 0777, 0600u) << name;
    }
  }
  auto again = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(again);
  EXPECT_EQ(One(**again, "SELECT y FROM t WHERE x = 1"), "one");
}

TEST(Database, UsesTheLogAndWaitsForTheDisk) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  std::string sync;
  ASSERT_TRUE((*database)
                  ->Write([&](Connection& c) -> Status {
                    ATHANOR_TRY(auto* statement, c.Prepare("PRAGMA synchronous"));
                    ATHANOR_CHECK_OK(statement->Step());
                    sync = statement->Text(0);
                    return Ok();
                  })
                  .ok());
  EXPECT_EQ(sync, "2");
  EXPECT_EQ(One(**database, "PRAGMA journal_mode"), "wal");
}

TEST(Database, AnErrorInsideATransactionUndoesAllOfIt) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  const Status failed = (*database)->Write([](Connection& c) -> Status {
    ATHANOR_CHECK_OK(Insert(c, 1, "one"));
    return Fail(ErrorCode::kCancelled, "changed my mind");
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t"), "0");

  EXPECT_THROW((void)(*database)->Write([](Connection& c) -> Status {
    ATHANOR_CHECK_OK(Insert(c, 1, "one"));
    throw std::runtime_error("from a library");
  }),
               std::runtime_error);
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t"), "0");
  EXPECT_TRUE((*database)->Write([](Connection& c) { return Insert(c, 1, "one"); }).ok());
}

TEST(Database, ATakenKeyIsAConflict) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  const Status failed = (*database)->Write([](Connection& c) -> Status {
    ATHANOR_CHECK_OK(Insert(c, 1, "one"));
    return Insert(c, 1, "two");
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kConflict);
}

TEST(Database, ATransactionInsideATransactionIsABugNotADeadlock) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  const Status failed = (*database)->Write([](Connection& c) {
    return c.Transaction([](Connection& inner) { return Insert(inner, 1, "one"); });
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kBug);
}

TEST(Database, AReaderCannotWrite) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  const Status failed = (*database)->Read([](Connection& c) { return Insert(c, 1, "one"); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kDenied);
}

TEST(Database, AReadSeesOneMomentWhileOthersWrite) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  ASSERT_TRUE((*database)->Write([](Connection& c) { return Insert(c, 1, "one"); }).ok());
  std::string before;
  std::string after;
  const Status read = (*database)->Read([&](Connection& c) -> Status {
    ATHANOR_TRY(auto* count, c.Prepare("SELECT count(*) FROM t"));
    ATHANOR_CHECK_OK(count->Step());
    before = count->Text(0);
    ATHANOR_CHECK_OK((*database)->Write([](Connection& w) { return Insert(w, 2, "two"); }));
    ATHANOR_TRY(count, c.Prepare("SELECT count(*) FROM t"));
    ATHANOR_CHECK_OK(count->Step());
    after = count->Text(0);
    return Ok();
  });
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(before, "1");
  EXPECT_EQ(after, "1");
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t"), "2");
}

TEST(Database, ManyThreadsReadWhileOneWrites) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      int64_t last = 0;
      for (int i = 0; i < 100; ++i) {
        const Status read = (*database)->Read([&](Connection& c) -> Status {
          ATHANOR_TRY(auto* statement, c.Prepare("SELECT count(*) FROM t"));
          ATHANOR_CHECK_OK(statement->Step());
          // Left on its row on purpose: the pool must settle it.
          if (statement->Int(0) < last) ++failures;
          last = statement->Int(0);
          return Ok();
        });
        if (!read.ok()) ++failures;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    if (!(*database)->Write([&](Connection& c) { return Insert(c, i, "x"); }).ok()) ++failures;
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t"), "100");
}

TEST(Database, TextIsKeptByteForByte) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  const std::string odd("a\0b\n\xff\xe2\x80\xae", 8);
  ASSERT_TRUE((*database)
                  ->Write([&](Connection& c) -> Status {
                    ATHANOR_CHECK_OK(Insert(c, 1, odd));
                    return Insert(c, 2, std::string_view());
                  })
                  .ok());
  EXPECT_EQ(One(**database, "SELECT y FROM t WHERE x = 1"), odd);
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t WHERE y = ''"), "1");
}

TEST(Migrations, AnOlderFileIsTakenToTheNewestVersion) {
  const ScratchDir dir;
  {
    auto database = Database::Open(dir / "a.db", kFirst);
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)->Write([](Connection& c) { return Insert(c, 1, "one"); }).ok());
  }
  auto database = Database::Open(dir / "a.db", kBoth);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_EQ(One(**database, "SELECT z FROM t WHERE x = 1"), "one!");
  EXPECT_EQ(One(**database, "PRAGMA user_version"), "2");
}

TEST(Migrations, AFileOfANewerProgramIsRefusedAndNotTouched) {
  const ScratchDir dir;
  { ASSERT_TRUE(Database::Open(dir / "a.db", kBoth)); }
  const auto before = ReadFile(dir / "a.db");
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, ErrorCode::kConflict);
  EXPECT_EQ(database.error().what, "this store was written by a newer athanor");
  EXPECT_EQ(database.error().hint, "install that version or set ATHANOR_HOME to another folder");
  EXPECT_EQ(ReadFile(dir / "a.db"), before);
}

TEST(Migrations, AFailingOneLeavesTheFileAsItWas) {
  constexpr Migration kBroken[] = {{1, "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)"},
                                   {2, "CREATE TABLE u (x INTEGER); DROP TABLE nothing"}};
  const ScratchDir dir;
  { ASSERT_TRUE(Database::Open(dir / "a.db", kFirst)); }
  EXPECT_FALSE(Database::Open(dir / "a.db", kBroken));
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_EQ(One(**database, "SELECT count(*) FROM sqlite_master WHERE name = 'u'"), "0");
}

TEST(Migrations, TheServersSchemaOpensTwice) {
  const ScratchDir dir;
  { ASSERT_NE(OpenStore(dir / "a.db"), nullptr); }
  EXPECT_NE(OpenStore(dir / "a.db"), nullptr);
}

// Planted bug: leave out CheckOurs, and a stranger's tables get ours added; or turn the
// file to WAL before it.
TEST(DatabaseFaults, AnotherProgramsDatabaseIsRefusedAndNotTouched) {
  const ScratchDir dir;
  sqlite3* stranger = nullptr;
  ASSERT_EQ(sqlite3_open((dir / "a.db").c_str(), &stranger), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(stranger, "CREATE TABLE theirs (x)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_close(stranger), SQLITE_OK);
  const auto before = ReadFile(dir / "a.db");
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(database.error().hint.empty());
  EXPECT_EQ(ReadFile(dir / "a.db"), before);
}

// Planted bug: map SQLITE_NOTADB to kUnavailable, and a server would retry for ever.
TEST(DatabaseFaults, AFileThatIsNoDatabaseIsCorrupt) {
  const ScratchDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "a.db", std::string(8192, 'x')).ok());
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(database.error().hint.empty());
}

// Planted bug: drop the error of Step, and a damaged page reads as the end of the table.
TEST(DatabaseFaults, ADamagedPageIsCorruptWhenItIsRead) {
  const ScratchDir dir;
  {
    auto database = Database::Open(dir / "a.db", kFirst);
    ASSERT_TRUE(database);
    ASSERT_TRUE((*database)
                    ->Write([](Connection& c) -> Status {
                      for (int i = 0; i < 200; ++i) {
                        ATHANOR_CHECK_OK(Insert(c, i, std::string(500, 'y')));
                      }
                      return Ok();
                    })
                    .ok());
  }
  auto bytes = ReadFile(dir / "a.db");
  ASSERT_TRUE(bytes);
  for (size_t i = 8192; i < bytes->size(); ++i) (*bytes)[i] = '\x5a';
  ASSERT_TRUE(WriteFileAtomic(dir / "a.db", *bytes).ok());
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database) << database.error().what;
  const Status read = (*database)->Read([](Connection& c) -> Status {
    ATHANOR_TRY(auto* statement, c.Prepare("SELECT sum(length(y)) FROM t"));
    ATHANOR_CHECK_OK(statement->Step());
    return Ok();
  });
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
}

// Planted bug: leave out the check of sqlite3_db_readonly, and Open succeeds for a
// store that no submit can ever be written to.
TEST(DatabaseFaults, AReadOnlyFileIsDeniedAtOnce) {
  const ScratchDir dir;
  { ASSERT_TRUE(Database::Open(dir / "a.db", kFirst)); }
  ASSERT_EQ(::chmod((dir / "a.db").c_str(), 0444), 0);
  // The folder may be written, so that nothing but the file itself is in the way.
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  const bool root = ::geteuid() == 0;
  // Permissions do not bind root, so the test steps down for the call.
  ASSERT_EQ(::seteuid(root ? 65534 : ::geteuid()), 0);
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, ErrorCode::kDenied);
  EXPECT_FALSE(database.error().hint.empty());
}

TEST(DatabaseFaults, AMissingFolderSaysWhatToSet) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "no/such/a.db", kFirst);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, ErrorCode::kNotFound);
  EXPECT_NE(database.error().hint.find("ATHANOR_HOME"), std::string::npos);
}

// Planted bug: do not keep the writer waiting for the end of the log, and while there is always
// something to write the log grows until the writer itself has to take all of it in.
TEST(Database, ALongLogIsBegunAnewWhileThereIsAlwaysSomethingToWrite) {
  const ScratchDir dir;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database) << database.error().what;
  // SQLite changes it with each beginning.
  const auto salt = [&] { return ReadFile(dir / "a.db-wal").value().substr(16, 8); };
  std::string first;
  int64_t rows = 0;
  do {
    const Status written = (*database)->Write([&](Connection& connection) -> Status {
      for (int i = 0; i < 25; ++i) {
        ATHANOR_CHECK_OK(Insert(connection, ++rows, std::string(16'000, 'x')));
      }
      return Ok();
    });
    ASSERT_TRUE(written.ok()) << written.error().what;
    if (first.empty()) first = salt();
    ASSERT_LT(rows, 3'500) << "14,000 pages";
  } while (salt() == first);
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t WHERE length(y) = 16000"),
            std::to_string(rows));
  EXPECT_EQ(One(**database, "PRAGMA integrity_check"), "ok");
}

// Planted bug: take the lock of FaultVfs away, and two threads note at once what they synced: the
// heap breaks now and then, as a simulation's once did ("double free or corruption"), and TSan sees
// it each time.
TEST(DatabaseFaults, ALogThatIsTakenInBesideTheWriterOutlivesAPowerCut) {
  constexpr int kCommits = 300;
  const ScratchDir dir;
  FaultVfs vfs;
  {
    auto database = Database::Open(dir / "a.db", kFirst);
    ASSERT_TRUE(database) << database.error().what;
    std::atomic<bool> over = false;
    std::thread taker([&] {
      auto care = SqliteConnection::Open(dir / "a.db", SqliteConnection::Role::kWriter);
      EXPECT_TRUE(care);
      while (care && !over) EXPECT_TRUE((*care)->TakeLogIn().ok());
      if (care) vfs.FailAt(0, FaultVfs::Fault::kIoError, true);  // closing syncs nothing more
    });
    for (int i = 1; i <= kCommits; ++i) {
      // One row: the files stay small, and the syncs close to each other.
      const Status written = (*database)->Write([&](Connection& c) {
        return c.Execute("REPLACE INTO t (x, y) VALUES (1, " + std::to_string(i) + ")");
      });
      EXPECT_TRUE(written.ok()) << written.error().what;
    }
    over = true;
    taker.join();
  }
  vfs.CutPower();
  vfs.Heal();
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_EQ(One(**database, "SELECT y FROM t"), std::to_string(kCommits));
  EXPECT_EQ(One(**database, "PRAGMA integrity_check"), "ok");
}

// Planted bug: treat SQLITE_FULL like any other disk error, and no one is told to make room.
TEST(DatabaseFaults, AFullDiskIsExhaustedAndPassesWhenThereIsRoomAgain) {
  const ScratchDir dir;
  FaultVfs vfs;
  auto database = Database::Open(dir / "a.db", kFirst);
  ASSERT_TRUE(database);
  vfs.FailAt(0, FaultVfs::Fault::kFull, true);
  const Status full = (*database)->Write([](Connection& c) { return Insert(c, 1, "one"); });
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kExhausted);
  EXPECT_NE(full.error().hint.find("df -h"), std::string::npos);
  vfs.Heal();
  EXPECT_TRUE((*database)->Write([](Connection& c) { return Insert(c, 1, "one"); }).ok());
  EXPECT_EQ(One(**database, "SELECT count(*) FROM t"), "1");
}

// Planted bug: run migrations outside a transaction, and a failure between the table and
// the version number leaves a file that no program opens again.
TEST(DatabaseFaults, AnOpenThatFailsAnywhereCanBeRepeated) {
  bool reached = true;
  for (int nth = 0; reached; ++nth) {
    SCOPED_TRACE(nth);
    const ScratchDir dir;
    FaultVfs vfs;
    vfs.FailAt(nth, FaultVfs::Fault::kIoError, true);
    (void)Database::Open(dir / "a.db", ServerMigrations());
    reached = vfs.failed();
    vfs.Heal();
    auto database = Database::Open(dir / "a.db", ServerMigrations());
    ASSERT_TRUE(database) << database.error().what << ": " << database.error().why;
    EXPECT_EQ(One(**database, "SELECT count(*) FROM jobs"), "0");
    ASSERT_LT(nth, 1000);
  }
}

}  // namespace
}  // namespace athanor
