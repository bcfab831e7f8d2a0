// Bits that flip in a store's file and in its log, at any position: what is read is what was
// written, or an error. Each test names the bug that turns it red.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <set>

#include "record/db/broken_log.h"
#include "record/db/checked_vfs.h"
#include "record/db/database.h"
#include "record/db/fault_vfs.h"
#include "record/db/log_walk.h"
#include "record/db/page_check.h"
#include "record/fault_testing.h"
#include "record/testing.h"

namespace athanor {
namespace {

constexpr Migration kTable[] = {
    {1, "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT NOT NULL); CREATE INDEX t_y ON t (y);"}};
constexpr size_t kPage = 4096;

std::string ValueOf(int64_t row) {
  // Some spill over to pages of their own.
  return "row " + std::to_string(row) + std::string(row % 7 == 0 ? 9000 : 200, 'v');
}

Status Insert(Database& database, int64_t from, int64_t to) {
  return database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare("INSERT INTO t (x, y) VALUES (?1, ?2)"));
    for (int64_t row = from; row < to; ++row) {
      statement->Bind(1, row);
      statement->Bind(2, ValueOf(row));
      ATHANOR_CHECK_OK(statement->Step());
    }
    return Ok();
  });
}

// The rows that are there, each checked; or why they cannot be read.
Result<std::set<int64_t>> Rows(const Database& database) {
  std::set<int64_t> rows;
  ATHANOR_CHECK_OK(database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare("SELECT x, y FROM t"));
    while (true) {
      ATHANOR_TRY(const bool row, statement->Step());
      if (!row) return Ok();
      EXPECT_EQ(statement->Text(1), ValueOf(statement->Int(0))) << "wrong data was shown";
      rows.insert(statement->Int(0));
    }
  }));
  return rows;
}

std::set<int64_t> UpTo(int64_t end) {
  std::set<int64_t> rows;
  for (int64_t row = 0; row < end; ++row) rows.insert(row);
  return rows;
}

void FlipBit(std::string& bytes, uint64_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
}

void PutStore(const std::string& path, const std::string& file, const std::string& log) {
  for (const char* beside : {"-wal", "-shm"}) ::unlink((path + beside).c_str());
  PutBytes(path, file);
  if (!log.empty()) PutBytes(path + "-wal", log);
}

void RemoveKept(const std::string& path) {
  const auto names = ListDir(DirName(path));
  for (const auto& name : names.value()) {
    if (name.find("-wal.") != std::string::npos) ::unlink(JoinPath(DirName(path), name).c_str());
  }
}

TEST(PageCheck, NoticesEachBitAndAPageInTheWrongPlace) {
  std::string page(kPage, 'p');
  StampPage(page, 7);
  EXPECT_TRUE(PageFits(page, 7));
  EXPECT_FALSE(PageFits(page, 8));
  for (size_t bit = 0; bit < page.size() * 8; bit += 5) {
    FlipBit(page, bit);
    EXPECT_FALSE(PageFits(page, 7)) << bit;
    FlipBit(page, bit);
  }
  EXPECT_FALSE(PageFits(std::string(kPage, '\0'), 1));
}

// Planted bug: go by one byte of the header only, and a flip in it switches the sums off.
TEST(PageCheck, NoFlipInTheHeaderHidesThatThereAreSums) {
  const ScratchDir dir;
  { ASSERT_TRUE(Database::Open(dir / "a.db", kTable)); }
  std::string header = ReadFile(dir / "a.db")->substr(0, kPageHeaderBytes);
  ASSERT_TRUE(FormatOfPages(header).checked);
  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    FlipBit(header, bit);
    EXPECT_TRUE(FormatOfPages(header).checked) << bit;
    FlipBit(header, bit);
  }
}

// Planted bug: verify in Read only pages of even number.
TEST(DatabaseDamage, AFlipInAnyPageIsNoticedByTheReadThatNeedsItAndByTheCheck) {
  Dice dice(TestSeed());
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  {
    auto database = Database::Open(path, kTable);
    ASSERT_TRUE(database);
    ASSERT_TRUE(Insert(**database, 0, 300).ok());
    // Free pages, too.
    ASSERT_TRUE((*database)
                    ->Write([](Connection& c) { return c.Execute("DELETE FROM t WHERE x >= 250"); })
                    .ok());
  }
  ASSERT_FALSE(Exists(path + "-wal"));
  const std::string whole = ReadFile(path).value();
  ASSERT_EQ(whole.size() % kPage, 0u);
  int refused = 0;
  for (size_t page = 0; page < whole.size() / kPage; ++page) {
    SCOPED_TRACE(page + 1);
    std::string flipped = whole;
    FlipBit(flipped, page * kPage * 8 + dice.Below(kPage * 8));
    PutStore(path, flipped, "");
    auto looked = Database::OpenToLook(path, kTable);
    if (!looked) {
      EXPECT_EQ(looked.error().code, ErrorCode::kCorrupt) << looked.error().what;
      ++refused;
      continue;
    }
    const auto checked = (*looked)->CheckPages();
    ASSERT_TRUE(checked);
    EXPECT_EQ(checked->broken, (std::vector<uint32_t>{static_cast<uint32_t>(page + 1)}));
    const auto rows = Rows(**looked);
    if (rows) {
      EXPECT_EQ(*rows, UpTo(250));
    } else {
      EXPECT_EQ(rows.error().code, ErrorCode::kCorrupt) << rows.error().what;
      EXPECT_NE(rows.error().what.find("page " + std::to_string(page + 1) + " of " + path),
                std::string::npos)
          << rows.error().what;
      EXPECT_FALSE(rows.error().hint.empty());
      ++refused;
    }
  }
  EXPECT_GT(refused, 20);
  PutStore(path, whole.substr(0, whole.size() - kPage), "");
  auto cut = Database::OpenToLook(path, kTable);
  ASSERT_FALSE(cut && Rows(**cut));
}

// SQLite writes pages of a large change to the log before it is committed, over each other, and
// puts their sums right at the end.
// Planted bug: look at frames whenever they are read, not only when the log is taken in.
TEST(DatabaseDamage, AChangeLargerThanTheCacheIsNoDamage) {
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  auto database = Database::Open(path, kTable);
  ASSERT_TRUE(database);
  for (int64_t turn = 0; turn < 4; ++turn) {
    const Status written = (*database)->Write([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* insert, connection.Prepare("INSERT INTO t (x, y) VALUES (?1, ?2)"));
      for (int64_t row = turn * 3000; row < (turn + 1) * 3000; ++row) {
        insert->Bind(1, row);
        insert->Bind(2, "before " + std::to_string(row) + std::string(900, 'b'));
        ATHANOR_CHECK_OK(insert->Step());
      }
      ATHANOR_TRY(auto* update, connection.Prepare("UPDATE t SET y = ?2 WHERE x = ?1"));
      for (int64_t row = turn * 3000; row < (turn + 1) * 3000; ++row) {
        update->Bind(1, row);
        update->Bind(2, ValueOf(row));
        ATHANOR_CHECK_OK(update->Step());
      }
      return Ok();
    });
    ASSERT_TRUE(written.ok()) << written.error().what;
    EXPECT_EQ(LookAtLog(path)->kind, LogState::Kind::kWhole);
  }
  EXPECT_EQ(*Rows(**database), UpTo(12'000));
  database->reset();
  EXPECT_FALSE(Exists(path + "-wal")) << "it was not taken in";
  auto again = Database::Open(path, kTable);
  ASSERT_TRUE(again);
  EXPECT_TRUE((*again)->CheckPages()->broken.empty());
  EXPECT_EQ(*Rows(**again), UpTo(12'000));
}

// One broken page must not cost more than what is on it.
TEST(DatabaseDamage, WhatIsNotOnTheBrokenPageIsReadAndWrittenAsBefore) {
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  {
    auto database = Database::Open(path, kTable);
    ASSERT_TRUE(database);
    ASSERT_TRUE(Insert(**database, 0, 200).ok());
  }
  std::string bytes = ReadFile(path).value();
  int found = 0;  // in the table and in its index
  for (size_t at = bytes.find("row 100v"); at != std::string::npos; ++found) {
    FlipBit(bytes, at * 8 + 3);
    at = bytes.find("row 100v", at + 1);
  }
  ASSERT_EQ(found, 2);
  PutStore(path, bytes, "");
  auto database = Database::Open(path, kTable);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_FALSE(Rows(**database));
  const auto one = [&](int64_t row) {
    return (*database)->Read([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* statement, connection.Prepare("SELECT y FROM t NOT INDEXED WHERE x = ?1"));
      statement->Bind(1, row);
      ATHANOR_CHECK_OK(statement->Step());
      return Ok();
    });
  };
  EXPECT_EQ(one(100).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(one(3).ok());
  EXPECT_TRUE(one(199).ok());
  EXPECT_TRUE(Insert(**database, 5000, 5010).ok());
}

// By another connection, which stays open next to the test's own.
void TakeLogIn(const std::string& path) {
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &other, SQLITE_OPEN_READWRITE, CheckedVfsName()),
            SQLITE_OK);
  // Before its first read a connection knows of no log.
  ASSERT_EQ(sqlite3_exec(other, "SELECT count(*) FROM t", nullptr, nullptr, nullptr), SQLITE_OK);
  int frames = 0;
  int taken = 0;
  ASSERT_EQ(sqlite3_wal_checkpoint_v2(other, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &taken),
            SQLITE_OK);
  ASSERT_GT(frames, 0);
  ASSERT_EQ(frames, taken);
  sqlite3_close(other);
}

// A store with `commits` commits of three rows each in its log and nothing of them in its file, as
// kill -9 leaves it.
struct KilledStore {
  std::string file;
  std::string log;
  explicit KilledStore(const std::string& path, int commits) {
    auto database = Database::Open(path, kTable);
    EXPECT_TRUE(database);
    for (int i = 0; i < commits; ++i) EXPECT_TRUE(Insert(**database, i * 3, i * 3 + 3).ok());
    file = ReadFile(path).value();
    log = ReadFile(path + "-wal").value();
  }
};

// Planted bug: let SQLite take the log over without looking at it; or take a flip in the last
// commit for a torn tail (OneBitIsWrong that looks at the first word of each pair only).
TEST(DatabaseDamage, ASingleFlipAnywhereInTheLogIsSaidAndCostsNothingBesideThePages) {
  Dice dice(TestSeed());
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  const KilledStore killed(path, 12);
  const size_t frame = kPage + kLogFrameHeaderBytes;
  const size_t frames = (killed.log.size() - kLogHeaderBytes) / frame;
  ASSERT_GT(frames, 30u);
  std::vector<uint64_t> bits;
  for (size_t bit = 0; bit < kLogHeaderBytes * 8; bit += 3) bits.push_back(bit);
  for (size_t i = 0; i < frames; ++i) {
    const uint64_t begin = (kLogHeaderBytes + i * frame) * 8;
    bits.push_back(begin + dice.Below(kLogFrameHeaderBytes * 8));
    bits.push_back(begin + dice.Below(frame * 8));
  }
  for (const uint64_t bit : bits) {
    SCOPED_TRACE("byte " + std::to_string(bit / 8) + " bit " + std::to_string(bit % 8));
    std::string log = killed.log;
    FlipBit(log, bit);
    PutStore(path, killed.file, log);
    auto database = Database::Open(path, kTable);
    ASSERT_TRUE(database) << database.error().what;
    const auto rows = Rows(**database);
    ASSERT_TRUE(rows) << rows.error().what;
    EXPECT_EQ(*rows, UpTo(static_cast<int64_t>(rows->size()))) << "a hole";
    const uint64_t byte = bit / 8;
    const uint64_t in_frame = byte < kLogHeaderBytes ? 0 : (byte - kLogHeaderBytes) % frame;
    const bool salts = byte < kLogHeaderBytes || (in_frame >= 8 && in_frame < 16);
    const bool sum = in_frame >= 16 && in_frame < kLogFrameHeaderBytes;
    const bool last = byte >= kLogHeaderBytes && (byte - kLogHeaderBytes) / frame + 1 == frames;
    if (salts || (sum && !last)) {
      EXPECT_NE((*database)->notice().find("nothing is lost"), std::string::npos)
          << (*database)->notice();
      EXPECT_EQ(*rows, UpTo(36));
      EXPECT_TRUE(BrokenLogsOf(path).empty());
    } else {
      EXPECT_NE((*database)->notice().find("LOST"), std::string::npos) << (*database)->notice();
      EXPECT_EQ(BrokenLogsOf(path).size(), 1u);
      EXPECT_LT(rows->size(), 36u);
    }
    database->reset();
    RemoveKept(path);
  }
}

// More than a bit: what comes before it is kept, and what is lost is reported and set aside.
// Planted bug: do not cut the log where it is damaged, and the next start finds the same again.
TEST(DatabaseDamage, DamageInTheLogKeepsWhatIsBeforeAndTellsWhatIsLost) {
  Dice dice(TestSeed());
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  const KilledStore killed(path, 12);
  const size_t frame = kPage + kLogFrameHeaderBytes;
  const size_t frames = (killed.log.size() - kLogHeaderBytes) / frame;
  size_t told = 0;
  for (size_t i = 0; i < frames; ++i) {
    SCOPED_TRACE(i + 1);
    std::string log = killed.log;
    // A sector of something else.
    const size_t at = kLogHeaderBytes + i * frame + kLogFrameHeaderBytes + dice.Below(6) * 512;
    for (size_t byte = at; byte < at + 512; ++byte) log[byte] = static_cast<char>(dice.Bits());
    PutStore(path, killed.file, log);
    const auto looked = LookAtLog(path);
    ASSERT_TRUE(looked);
    {
      auto database = Database::Open(path, kTable);
      ASSERT_TRUE(database) << database.error().what;
      const auto rows = Rows(**database);
      ASSERT_TRUE(rows) << rows.error().what;
      EXPECT_EQ(*rows, UpTo(static_cast<int64_t>(rows->size()))) << "a hole";
      EXPECT_EQ(rows->size() % 3, 0u);
      const bool said = (*database)->notice().find("LOST") != std::string::npos;
      EXPECT_EQ(said, looked->kind == LogState::Kind::kCut);
      const auto kept = BrokenLogsOf(path);
      ASSERT_EQ(kept.size(), said ? 1u : 0u);
      if (said) {
        EXPECT_EQ(ReadFile(kept.front()), log);
        EXPECT_NE(NoteOf(kept.front()).find("LOST"), std::string::npos);
        ++told;
      } else {
        // The last commit of all may be one that a power cut tore: it alone is dropped in silence.
        EXPECT_GE(rows->size(), 33u);
      }
      ASSERT_TRUE(Insert(**database, 1000, 1001).ok());
      // As killed: what was said once is not said again.
      const auto again = LookAtLog(path);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->kind, LogState::Kind::kWhole) << again->said;
    }
    RemoveKept(path);
  }
  EXPECT_GT(told, frames / 2);
}

// Planted bug: take the frames before the damage although the file has newer pages than they.
TEST(DatabaseDamage, ABrokenLogThatWasTakenInAlreadyCostsNothing) {
  Dice dice(TestSeed());
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  std::string file;
  std::string log;
  {
    auto database = Database::Open(path, kTable);
    ASSERT_TRUE(database);
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(Insert(**database, i * 3, i * 3 + 3).ok());
    TakeLogIn(path);
    file = ReadFile(path).value();
    log = ReadFile(path + "-wal").value();
  }
  for (size_t i = 0; i < 512; ++i) {
    log[kLogHeaderBytes + 3 * 4120 + 1000 + i] = static_cast<char>(dice.Bits());
  }
  PutStore(path, file, log);
  auto database = Database::Open(path, kTable);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_NE((*database)->notice().find("nothing is lost"), std::string::npos)
      << (*database)->notice();
  const auto rows = Rows(**database);
  ASSERT_TRUE(rows) << rows.error().what;
  EXPECT_EQ(*rows, UpTo(36));
}

// Planted bug: take every frame that does not fit for damage.
TEST(DatabaseDamage, ATornTailAndRestsOfAnEarlierLogRaiseNoAlarm) {
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  const KilledStore killed(path, 12);
  const size_t frame = kPage + kLogFrameHeaderBytes;
  const size_t end = killed.log.size();
  for (size_t cut = 0; cut < 2 * frame; cut += 97) {
    std::string log = killed.log.substr(0, end - cut);
    PutStore(path, killed.file, log);
    EXPECT_EQ(LookAtLog(path)->kind, LogState::Kind::kWhole) << cut;
    // A sector that never came, in the last commit.
    log = killed.log;
    for (size_t i = 0; i < 512 && cut + i < 2 * frame; ++i) log[end - cut - 1 - i] = '\0';
    PutStore(path, killed.file, log);
    EXPECT_NE(LookAtLog(path)->kind, LogState::Kind::kCut) << cut;
  }
  // A log that was started again over a longer one.
  PutStore(path, killed.file, killed.log);
  auto database = Database::Open(path, kTable);
  ASSERT_TRUE(database);
  const auto salt = [&] { return ReadFile(path + "-wal")->substr(16, 8); };
  const std::string before = salt();
  TakeLogIn(path);
  for (int i = 100; i < 104; ++i) {
    ASSERT_TRUE(Insert(**database, i, i + 1).ok());
    EXPECT_EQ(LookAtLog(path)->kind, LogState::Kind::kWhole);
    EXPECT_NE(salt(), before);
  }
}

// Planted bug: as above; here the disk of FaultVfs decides what a power cut leaves.
TEST(DatabaseDamage, APowerCutAtAnyMomentIsNoDamage) {
  bool reached = true;
  for (int nth = 0; reached && nth < 400; nth += 3) {
    SCOPED_TRACE(nth);
    const ScratchDir dir;
    const std::string path = dir / "a.db";
    FaultVfs vfs;
    int64_t answered = 0;
    {
      auto database = Database::Open(path, kTable);
      ASSERT_TRUE(database);
      vfs.FailAt(nth, FaultVfs::Fault::kIoError, true);
      for (int i = 0; i < 30; ++i) {
        if (!Insert(**database, i * 3, i * 3 + 3).ok()) break;
        answered = i * 3 + 3;
      }
      reached = vfs.failed();
    }
    vfs.CutPower();
    vfs.Heal();
    auto database = Database::Open(path, kTable);
    ASSERT_TRUE(database) << database.error().what << database.error().why;
    EXPECT_EQ((*database)->notice(), "");
    const auto rows = Rows(**database);
    ASSERT_TRUE(rows) << rows.error().what;
    EXPECT_GE(static_cast<int64_t>(rows->size()), answered);
    EXPECT_EQ(*rows, UpTo(static_cast<int64_t>(rows->size())));
    const auto checked = (*database)->CheckPages();
    ASSERT_TRUE(checked);
    EXPECT_TRUE(checked->broken.empty());
  }
}

// Planted bug: give a page from the log its sum without looking at the log's own: the flip is then
// in the file for good, under a right sum.
TEST(DatabaseDamage, AFlippedLogIsNotTakenIntoTheFileAndNothingMoreIsPromised) {
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  auto database = Database::Open(path, kTable);
  ASSERT_TRUE(database);
  ASSERT_TRUE(Insert(**database, 0, 30).ok());
  const std::string log = ReadFile(path + "-wal").value();
  const UniqueFd fd(::open((path + "-wal").c_str(), O_WRONLY | O_CLOEXEC));
  size_t found = 0;
  for (size_t at = log.find("row 20v"); at != std::string::npos; at = log.find("row 20v", at + 1)) {
    ASSERT_EQ(::pwrite(fd.get(), "rot", 3, static_cast<off_t>(at)), 3);
    ++found;
  }
  ASSERT_GT(found, 0u);
  // Until the log is long enough to be taken in.
  Status written = Ok();
  for (int64_t row = 100; written.ok() && row < 40'000; row += 50) {
    written = Insert(**database, row, row + 50);
  }
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kCorrupt) << written.error().what;
  EXPECT_NE(written.error().what.find("frame "), std::string::npos) << written.error().what;
  EXPECT_EQ(ReadFile(path)->find("rot 20"), std::string::npos);
}

// A store of before there were sums gets them once, and is kept as it was.
TEST(PageSums, AStoreWithoutThemGetsThemAndIsKeptAsItWas) {
  const ScratchDir dir;
  const std::string path = dir / "a.db";
  sqlite3* plain = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &plain), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(plain,
                         "PRAGMA journal_mode=WAL; PRAGMA application_id=0x4174686e;"
                         "PRAGMA user_version=1;"
                         "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT NOT NULL);"
                         "CREATE INDEX t_y ON t (y); INSERT INTO t VALUES (1, 'one')",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  // Its log is not taken in: the copy must have what is there.
  sqlite3_db_config(plain, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  ASSERT_EQ(sqlite3_close(plain), SQLITE_OK);
  const auto one = [](const Database& database) {
    std::string value;
    EXPECT_TRUE(database
                    .Read([&](Connection& c) -> Status {
                      ATHANOR_TRY(auto* statement, c.Prepare("SELECT y FROM t WHERE x = 1"));
                      ATHANOR_CHECK_OK(statement->Step());
                      value = statement->Text(0);
                      return Ok();
                    })
                    .ok());
    return value;
  };
  {
    auto looked = Database::OpenToLook(path, kTable);
    ASSERT_TRUE(looked);
    EXPECT_FALSE((*looked)->CheckPages()->have_sums);
    EXPECT_EQ(one(**looked), "one");
    // Backups have them in any case.
    ASSERT_TRUE((*looked)->CopyTo(dir / "copy.db").ok());
  }
  for (const char* name : {"a.db", "copy.db"}) {
    auto database = Database::Open(dir / name, kTable);
    ASSERT_TRUE(database) << database.error().what;
    EXPECT_TRUE((*database)->CheckPages()->have_sums);
    EXPECT_EQ(one(**database), "one");
    EXPECT_TRUE(
        (*database)
            ->Write([](Connection& c) { return c.Execute("INSERT INTO t VALUES (2, 'two')"); })
            .ok());
    EXPECT_EQ((*database)->notice().find("were given sums") != std::string::npos,
              name == std::string("a.db"));
  }
  EXPECT_EQ(Database::Open(path, kTable).value()->notice(), "");
  // A program that knows of no sums goes by this name, and refuses.
  const auto header = ReadFile(path)->substr(68, 4);
  EXPECT_EQ(header, "Athc");
  const auto kept = ReadFile(path + ".plain");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->substr(68, 4), "Athn");
  EXPECT_EQ((*kept)[20], 0);
}

// Planted bug: rename before the old log is gone.
TEST(PageSums, AKillWhileTheyAreGivenLeavesAStoreThatOpens) {
  for (int nth = 0; nth < 60; ++nth) {
    SCOPED_TRACE(nth);
    const ScratchDir dir;
    const std::string path = dir / "a.db";
    sqlite3* plain = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &plain), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(plain,
                           "PRAGMA journal_mode=WAL; PRAGMA application_id=0x4174686e;"
                           "PRAGMA user_version=1;"
                           "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT NOT NULL);"
                           "CREATE INDEX t_y ON t (y);",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    for (int i = 0; i < 30; ++i) {
      const std::string sql =
          "INSERT INTO t VALUES (" + std::to_string(i) + ", '" + ValueOf(i) + "')";
      ASSERT_EQ(sqlite3_exec(plain, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    }
    sqlite3_db_config(plain, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    ASSERT_EQ(sqlite3_close(plain), SQLITE_OK);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultVfs vfs;
      vfs.FailAt(nth, FaultVfs::Fault::kKill, true);
      (void)Database::Open(path, kTable);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    auto database = Database::Open(path, kTable);
    ASSERT_TRUE(database) << database.error().what << database.error().why;
    const auto rows = Rows(**database);
    ASSERT_TRUE(rows) << rows.error().what;
    EXPECT_EQ(*rows, UpTo(30));
    EXPECT_TRUE((*database)->CheckPages()->have_sums);
    EXPECT_TRUE((*database)->CheckPages()->broken.empty());
    if (WIFEXITED(status)) break;  // it was through
  }
}

// Planted bug: fail the open.
TEST(PageSums, WithoutRoomForACopyTheStoreGoesOnWithoutThemAndSaysSo) {
  SmallDisk disk("40M");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const std::string path = disk.path() + "/a.db";
  sqlite3* plain = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &plain), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(plain,
                         "PRAGMA application_id=0x4174686e; PRAGMA user_version=1;"
                         "CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT NOT NULL);"
                         "CREATE INDEX t_y ON t (y)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_close(plain), SQLITE_OK);
  auto database = Database::Open(path, kTable);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_NE((*database)->notice().find("damage of the store will not be noticed"),
            std::string::npos);
  EXPECT_TRUE(Insert(**database, 0, 30).ok());
  EXPECT_EQ(*Rows(**database), UpTo(30));
  EXPECT_FALSE((*database)->CheckPages()->have_sums);
}

}  // namespace
}  // namespace athanor
