// Checkpoints while the server is away, or silent: they are late, and that is all.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>

#include "base/io/test_dir.h"
#include "link/job_dir.h"
#include "run/checkpoint/checkpoint_sync.h"
#include "run/checkpoint/checkpoint_testing.h"
#include "run/checkpoint/restore.h"

namespace athanor {
namespace {

class CheckpointsOfAnAwayServer : public ::testing::Test {
 protected:
  CheckpointsOfAnAwayServer() {
    EXPECT_TRUE(MakeDirs(dir_ / "files"));
    options_.dir = HeldFolder::At(dir_ / "files").value();
    options_.part_bytes = 1'000;
    options_.settle = Millis(20);
    options_.look_every = Millis(5);
    options_.log = [this](const std::string& text) { log_.push_back(text); };
  }
  std::unique_ptr<CheckpointSync> Open(const JobFiles& files, const Clock& clock) {
    auto sync = CheckpointSync::Open(options_, files, clock);
    EXPECT_TRUE(sync) << sync.error().what;
    return std::move(*sync);
  }
  std::string File(const std::string& name) const { return dir_ / ("files/" + name); }
  std::map<std::string, std::string> Stored() {
    const auto files = job_.Open(options_.attempt);
    EXPECT_TRUE(RemoveTree(dir_ / "restored").ok());
    const auto restored = RestoreCheckpoint({*files, job_dir::kManifests}, "", dir_ / "restored");
    EXPECT_TRUE(restored && restored->passed_over.empty());
    return TreeOf(dir_ / "restored");
  }

  TestDir dir_;
  SystemClock clock_;
  TestJobFiles job_{Reach::kServer, dir_.path(), ""};
  std::vector<std::string> log_;
  CheckpointSyncOptions options_;
};

// Planted bugs: Stop does not end the wait (it never returns); FinalSync is still told to stop.
TEST_F(CheckpointsOfAnAwayServer, StopEndsTheWaitAndFinalSyncWaitsUntilItIsBack) {
  std::atomic<int> pauses = 0;
  std::atomic<int> back_at = 0;
  auto options = job_.server()->Tls();
  options.pause = [&](Millis) {
    if (++pauses == back_at) job_.Mend();
    pauses.notify_all();
    std::this_thread::yield();
    return true;
  };
  const auto files = RemoteJobFiles::Open(options).value();
  options_.server_patience = Millis(0);
  const auto sync = Open(*files, clock_);
  job_.Break();
  Put(File("step_1.pt"), SomeBytes(5'000));
  sync->Start();
  pauses.wait(0);
  sync->Stop();
  EXPECT_FALSE(sync->newest());
  EXPECT_TRUE(log_.empty()) << log_.front();
  back_at = pauses + 20;
  const auto last = sync->FinalSync(true);
  ASSERT_TRUE(last) << last.error().what;
  ASSERT_TRUE(*last);
  EXPECT_EQ((*last)->id, "1-1");
  EXPECT_GE(pauses, back_at);
  EXPECT_EQ(Stored(), TreeOf(dir_ / "files"));
}

// A port that takes connections and says nothing. Planted bugs: Open asks the server although it
// was told not to; Stop waits for the answer.
TEST_F(CheckpointsOfAnAwayServer, NobodyWaitsForASilentOne) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto files =
      RemoteJobFiles::Open(job_.server()->At("http://127.0.0.1", ntohs(address.sin_port))).value();
  options_.begin_at_once = false;
  const auto sync = Open(*files, clock_);
  pollfd asked{listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&asked, 1, 0), 0);
  sync->Start();
  EXPECT_EQ(::poll(&asked, 1, 60'000), 1);
  sync->Stop();
}

// Planted bugs: the looks wait with the upload; a state that was chosen stays chosen, and is gone
// when the server is back; what was restored is stored again.
TEST_F(CheckpointsOfAnAwayServer, TheNewestStateIsStoredWhenItIsBack) {
  FakeClock clock;
  const auto first = job_.Open();
  Put(File("restored.pt"), SomeBytes(3'000, 1));
  ASSERT_TRUE(Open(*first, clock)->FinalSync(true).value());
  options_.attempt = 2;
  options_.begin_at_once = false;
  options_.server_patience = Millis(1);
  const auto files = job_.Open(2);
  job_.Break();
  const auto sync = Open(*files, clock);
  const auto look = [&](int64_t ms) {
    clock.Advance(Millis(ms));
    return sync->Look();
  };
  const auto first_try = look(300);
  ASSERT_FALSE(first_try);
  EXPECT_EQ(first_try.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(log_.size(), 1u);
  for (const uint32_t save : {2u, 3u, 4u}) {
    Put(File("step.pt"), SomeBytes(2'000, save));
    for (int i = 0; i < 40; ++i) (void)look(500);
    EXPECT_TRUE(sync->last_write());
  }
  job_.Mend();
  const auto stored = look(60'000);
  ASSERT_TRUE(stored) << stored.error().what;
  ASSERT_TRUE(*stored);
  EXPECT_EQ((*stored)->id, "2-1");
  EXPECT_EQ((*stored)->new_bytes, 2'000u);
  EXPECT_EQ(Stored(), TreeOf(dir_ / "files"));
}

// Restored files that come to nothing new are no checkpoint, whenever that is found out.
TEST_F(CheckpointsOfAnAwayServer, WhatWasRestoredIsNotKeptAgain) {
  FakeClock clock;
  const auto first = job_.Open();
  Put(File("restored.pt"), SomeBytes(3'000, 1));
  ASSERT_TRUE(Open(*first, clock)->FinalSync(true).value());
  options_.attempt = 2;
  options_.begin_at_once = false;
  const auto sync = Open(*job_.Open(2), clock);
  for (int i = 0; i < 3; ++i) {
    clock.Advance(Millis(300));
    EXPECT_FALSE(sync->Look().value());
  }
  EXPECT_FALSE(sync->FinalSync(true).value());
  EXPECT_TRUE(log_.empty());
}

// Files of a server that does what it is told, whose answer to the next Commit is lost.
class OneLostAnswer final : public JobFiles {
 public:
  OneLostAnswer(std::unique_ptr<JobFiles> files, bool& lose)
      : files_(std::move(files)), lose_(lose) {}
  std::unique_ptr<JobFiles> Until(int fd, Millis patience) const override {
    return std::make_unique<OneLostAnswer>(files_->Until(fd, patience), lose_);
  }
  Result<std::vector<bool>> Has(Shelf shelf, const std::vector<BlobRef>& blobs) override {
    return files_->Has(shelf, blobs);
  }
  Result<UniqueFd> Get(Shelf shelf, const std::string& sha256) override {
    return files_->Get(shelf, sha256);
  }
  Result<BlobRef> Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                      const Pace& pace) override {
    return files_->Put(shelf, fd, offset, bytes, pace);
  }
  Result<std::vector<JobEntry>> List(const std::string& folder) override {
    return files_->List(folder);
  }
  Result<UniqueFd> Read(const std::string& name) override { return files_->Read(name); }
  Status Replace(const std::string& name, int fd) override { return files_->Replace(name, fd); }
  Result<uint64_t> Append(const std::string& name, uint64_t at, std::string_view text) override {
    return files_->Append(name, at, text);
  }
  Status Remove(const std::string& name) override { return files_->Remove(name); }
  Result<CheckpointInfo> Commit(const CheckpointManifest& manifest) override {
    auto info = files_->Commit(manifest);
    if (std::exchange(lose_, false)) return Fail(ErrorCode::kUnavailable, "hung up");
    return info;
  }
  Status Tend(const CheckpointCare& care) override { return files_->Tend(care); }

 private:
  const std::unique_ptr<JobFiles> files_;
  bool& lose_;
};

// Planted bug: the second try has a time of its own, and is another checkpoint.
TEST_F(CheckpointsOfAnAwayServer, ACommitWhoseAnswerWasLostIsNotASecondCheckpoint) {
  bool lose = true;
  FakeClock clock;
  const OneLostAnswer files(job_.Open(), lose);
  const auto sync = Open(files, clock);
  Put(File("step_1.pt"), SomeBytes(2'000));
  sync->NoteSave({1, 1, SystemClock().Wall()});
  EXPECT_EQ(sync->Look().error().code, ErrorCode::kUnavailable);
  clock.Advance(Millis(5'000));
  const auto again = sync->Look();
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->id, "1-1");
}

}  // namespace
}  // namespace athanor
