#include "run/ship/shipper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "link/spool_writer.h"
#include "link/strangers_testing.h"
#include "run/ship/log_follower.h"

namespace athanor {
namespace {

// A shipper whose server never answers, and the values that were seen by name.
class Away {
 public:
  Away() : log_(::open("/dev/null", O_WRONLY | O_CLOEXEC), clock_) {
    plan_.server = "unix:" + (dir_ / "no-server");
    plan_.spec.metrics = {{"printed", "printed=([0-9]+)", ""}};
    patterns_ = *SecretPatterns::Make({{"TOKEN", "very-secret"}});
    shipper_.emplace(Shipper::Options{plan_, clock_, log_, patterns_, [] { return UsageFrame{}; },
                                      [](const ReplyFrame&) {},
                                      [this](const PointBatch& batch) {
                                        std::lock_guard lock(mutex_);
                                        for (const auto& item : batch.items)
                                          seen_[item.point.name].push_back(item.point.value);
                                      },
                                      [this](uint64_t bytes) {
                                        std::lock_guard lock(mutex_);
                                        bytes_ += bytes;
                                      },
                                      [this](const SpoolCheckpoint& saved) {
                                        std::lock_guard lock(mutex_);
                                        seen_["saved"].push_back(static_cast<double>(saved.step));
                                      }});
  }
  Shipper& shipper() { return *shipper_; }
  const TestDir& dir() const { return dir_; }
  std::vector<double> Seen(const std::string& name) {
    std::lock_guard lock(mutex_);
    return seen_[name];
  }
  uint64_t bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }
  bool Eventually(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

 private:
  TestDir dir_;
  SystemClock clock_;
  Logger log_;
  AttemptPlan plan_;
  std::shared_ptr<const SecretPatterns> patterns_;
  std::mutex mutex_;
  std::map<std::string, std::vector<double>> seen_;
  uint64_t bytes_ = 0;
  std::optional<Shipper> shipper_;
};

std::vector<double> UpTo(size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i);
  return values;
}

// Planted bug: reading the spool only while less than kMostPoints wait to be sent.
TEST(Shipper, PointsThatWaitForAServerAreSeenOnceAndInOrder) {
  constexpr size_t kPoints = 150'000;
  Away away;
  ASSERT_TRUE(away.shipper().FollowSpool(0, *HeldFolder::At(away.dir() / "spool")).ok());
  away.shipper().Start();
  spool::SpoolWriter writer(away.dir() / "spool");
  int64_t now_ns = 0;
  for (size_t i = 0; i < kPoints; ++i) {
    // More than the free segments hold: the shipper makes new ones meanwhile.
    ASSERT_TRUE(away.Eventually([&] {
      now_ns += 2'000'000;
      return writer.AppendNamed("loss", spool::kHasStep, static_cast<int64_t>(i), now_ns,
                                static_cast<double>(i)) != 0;
    }));
  }
  EXPECT_TRUE(away.Eventually([&] { return away.Seen("loss").size() >= kPoints; }));
  away.shipper().Stop();
  EXPECT_EQ(away.Seen("loss"), UpTo(kPoints));
}

// Planted bug: CatchUp not waiting for a read that began after it was called.
TEST(Shipper, ASaveIsToldOfBeforeCatchUpReturns) {
  Away away;
  ASSERT_TRUE(away.shipper().FollowSpool(0, *HeldFolder::At(away.dir() / "spool")).ok());
  away.shipper().Start();
  ASSERT_TRUE(away.Eventually([&] { return Exists(away.dir() / "spool"); }));
  spool::SpoolWriter writer(away.dir() / "spool");
  constexpr size_t kSaves = 20;
  for (size_t i = 0; i < kSaves; ++i) {
    ASSERT_TRUE(writer.AppendCheckpoint(static_cast<int64_t>(i), 1, 1));
    away.shipper().CatchUp(Millis(60'000));
    ASSERT_EQ(away.Seen("saved").size(), i + 1);
  }
  EXPECT_EQ(away.Seen("saved"), UpTo(kSaves));
}

// Planted bug: reading a log only while less than kReadAhead waits to be sent.
TEST(Shipper, LinesThatWaitForAServerAreSeenOnceAndScrubbed) {
  constexpr size_t kLines = 100'000;
  Away away;
  const std::string path = away.dir() / "out";
  away.shipper().Follow(0, LogStream::kStdout, path);
  away.shipper().Start();
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  uint64_t shown = 0;
  std::string pending;
  for (size_t i = 0; i < kLines; ++i) {
    const std::string rest = " printed=" + std::to_string(i) + " and some more to make it long\n";
    pending += "very-secret" + rest;
    shown += std::string("***TOKEN***").size() + rest.size();
    if (pending.size() < 30'011 && i + 1 < kLines) continue;
    // Cut anywhere: also within a line and within a secret.
    const size_t half = pending.size() - std::min<size_t>(pending.size(), i % 40);
    ASSERT_TRUE(WriteAll(file.get(), std::string_view(pending).substr(0, half)));
    pending.erase(0, half);
    std::this_thread::yield();
  }
  ASSERT_TRUE(WriteAll(file.get(), pending));
  EXPECT_TRUE(away.Eventually([&] { return away.Seen("printed").size() >= kLines; }));
  away.shipper().Stop();
  EXPECT_EQ(away.Seen("printed"), UpTo(kLines));
  EXPECT_EQ(away.bytes(), shown);
}

// Planted bug: take the end of the last look for the end. A script that logged 20,000 points and
// then printed its last line lost that line, one time in fifteen.
TEST(LogFollower, WhatCameAfterTheLastLookIsReadBeforeTheStreamIsFinished) {
  const TestDir dir;
  const std::string path = dir / "out";
  ASSERT_TRUE(ReplaceFile(path, "").ok());
  std::string got;
  LogFollower follower(path, *SecretPatterns::Make({{"TOKEN", "very-secret"}}),
                       [&](std::string_view bytes, bool) { got += bytes; });
  follower.Read(1 << 20, Millis(0));
  std::ofstream(path, std::ios::app) << "last words\n";
  follower.Finish();
  EXPECT_FALSE(follower.finished());
  EXPECT_FALSE(follower.drained());
  follower.Read(1 << 20, Millis(1));
  follower.Finish();
  EXPECT_TRUE(follower.finished());
  EXPECT_EQ(got, "last words\n");
}

// Planted bugs: end at the first stranger, or send it the token.
TEST(Shipper, WaitsForItsOwnServerWhileAStrangerAnswers) {
  std::atomic<int> notes = 0;
  KeyedServer server([&](Request request, const Responder& responder) {
    const auto frames = DecodeReport(request.body);
    for (const auto& frame : frames.value()) notes += std::holds_alternative<NoteFrame>(frame);
    Response response;
    response.body = EncodeReply({});
    responder.Send(std::move(response));
  });
  server.UpAsStranger();
  AttemptPlan plan;
  plan.server = server.url();
  plan.pin = server.pin();
  plan.token = "athjob_x";
  const SystemClock clock;
  const LogFile file;
  Logger log(file.fd(), clock);
  Shipper::Options options{plan,
                           clock,
                           log,
                           *SecretPatterns::Make({}),
                           [] { return UsageFrame{}; },
                           [](const ReplyFrame&) {}};
  options.stranger_pause = Millis(1);
  Shipper shipper(std::move(options));
  shipper.Send(NoteFrame{{"event_files", "kept while nobody could hear it", "", ""}});
  shipper.Start();
  while (file.Count(server.other_pin().substr(0, 12)) == 0) std::this_thread::yield();
  EXPECT_EQ(server.heard(), 0);
  server.Down();
  server.Up();
  EXPECT_TRUE(shipper.Drain());
  EXPECT_EQ(notes, 1);
  EXPECT_EQ(file.Count("another server answers"), 1u) << file.text();
  EXPECT_EQ(file.Count(server.pin().substr(0, 12)), 1u) << file.text();
}

}  // namespace
}  // namespace athanor
