#include "link/server_record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "record/layout.h"

namespace athanor {
namespace {

struct ServerRecordTest : testing::Test {
  void SetUp() override {
    ASSERT_TRUE(ReplaceFile(StoreLayout{home.path()}.lock(), "").ok());
    ASSERT_TRUE(ReplaceFile(home / "server.log", "").ok());
  }
  void Write(StartedBy by) {
    ServerRecord record;
    record.by = by;
    ASSERT_TRUE(WriteServerRecord(home.path(), record).ok());
  }
  TestDir home;
};

TEST_F(ServerRecordTest, ComesBackAsItWasWritten) {
  ServerRecord record;
  record.by = StartedBy::kService;
  record.pid = 4711;
  record.url = "http://127.0.0.1:7070";
  record.again = "systemctl --user start athanor.service";
  record.moved = "two\nlines";
  record.started_ms = 1'794'786'070'708;
  record.revivals = 3;
  ASSERT_TRUE(WriteServerRecord(home.path(), record).ok());
  const auto read = ReadServerRecord(home.path());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->by, record.by);
  EXPECT_EQ(read->pid, record.pid);
  EXPECT_EQ(read->url, record.url);
  EXPECT_EQ(read->again, record.again);
  EXPECT_EQ(read->moved, "two lines");
  EXPECT_EQ(read->started_ms, record.started_ms);
  EXPECT_EQ(read->revivals, 3);
  RemoveServerRecord(home.path());
  EXPECT_FALSE(ReadServerRecord(home.path()));
}

TEST_F(ServerRecordTest, OnlyAServerThatACommandStartedIsRevived) {
  EXPECT_FALSE(MayReviveServer(home.path())) << "it was asked to end";
  Write(StartedBy::kHand);
  EXPECT_FALSE(MayReviveServer(home.path()));
  Write(StartedBy::kService);
  EXPECT_FALSE(MayReviveServer(home.path()));
  Write(StartedBy::kCommand);
  EXPECT_TRUE(MayReviveServer(home.path()));
}

TEST_F(ServerRecordTest, OneThatRunsIsNotRevived) {
  Write(StartedBy::kCommand);
  const UniqueFd lock(::open(StoreLayout{home.path()}.lock().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(MayReviveServer(home.path()));
  EXPECT_EQ(ReviveServer(home.path(), "/bin/true").error().code, ErrorCode::kConflict);
}

TEST_F(ServerRecordTest, ARevivalRunsTheProgramForThisHome) {
  Write(StartedBy::kCommand);
  const auto script = home / "program";
  ASSERT_TRUE(ReplaceFile(script, "#!/bin/sh\necho \"$ATHANOR_HOME $*\"\n", 0700).ok());
  const auto pid = ReviveServer(home.path(), script);
  ASSERT_TRUE(pid.has_value()) << pid.error().what;
  int status = -1;
  ASSERT_EQ(::waitpid(*pid, &status, 0), *pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadFile(home / "server.log").value(), home.path() + " serve --revive\n");
}

TEST_F(ServerRecordTest, ARemovedHomeIsNotMadeAnew) {
  ASSERT_TRUE(RemoveTree(home.path()).ok());
  EXPECT_FALSE(ReviveServer(home.path(), "/bin/true"));
  EXPECT_FALSE(Exists(home.path()));
}

TEST(PauseBeforeRevival, GrowsToALimitWhenItDiesAgainAndAgain) {
  ServerRecord record;
  Millis last{0};
  for (record.revivals = 0; record.revivals < 10; ++record.revivals) {
    EXPECT_GE(PauseBeforeRevival(record), last);
    last = PauseBeforeRevival(record);
  }
  EXPECT_EQ(last, Millis(60'000));
}

}  // namespace
}  // namespace athanor
