#include "watch/hang/hang_watch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace athanor {
namespace {

using std::chrono::minutes;

LimitSpec After(Millis after, std::string action = "note") {
  LimitSpec limits;
  limits.hang_after = after;
  limits.hang_action = std::move(action);
  return limits;
}

// A script seen once a second.
class Script {
 public:
  explicit Script(const LimitSpec& limits) : watch(limits) { (void)watch.Sample(sample); }

  // Seconds pass, each with that much CPU and output; returns how many hangs were reported.
  int Pass(int seconds, double cpu_percent, uint64_t bytes = 0) {
    int hangs = 0;
    for (int i = 0; i < seconds; ++i) {
      sample.now += Seconds(1);
      sample.cpu_ns += static_cast<uint64_t>(cpu_percent * 1e7);
      sample.log_bytes += bytes;
      if (auto hang = watch.Sample(sample)) {
        last = *hang;
        ++hangs;
      }
    }
    return hangs;
  }
  // Works through steps of so many seconds, with a metric for each.
  int Steps(int count, int seconds) {
    int hangs = 0;
    for (int i = 0; i < count; ++i) {
      hangs += Pass(seconds - 1, 90);
      ++sample.points;
      sample.step = sample.step.value_or(0) + 1;
      hangs += Pass(1, 90);
    }
    return hangs;
  }

  HangWatch watch;
  HangSample sample;
  Hang last;
};

TEST(HangWatch, TellsOnceWhatStoodStillForHowLong) {
  Script script(After(minutes(2)));
  EXPECT_EQ(script.Pass(60, 100, 10), 0);
  EXPECT_EQ(script.Pass(119, 0), 0);
  EXPECT_EQ(script.Pass(60, 0.2), 1);
  EXPECT_GE(script.last.quiet, minutes(2));
  EXPECT_EQ(script.last.limit, minutes(2));
  EXPECT_FALSE(script.last.median_step);
  EXPECT_LT(script.last.cpu_percent, 1);
  EXPECT_NE(script.last.Text().find("allowed: 2 m, limits.hang.after"), std::string::npos)
      << script.last.Text();
  EXPECT_EQ(script.Pass(10'000, 0), 0) << "once";
}

TEST(HangWatch, TellsAgainAfterALineAMetricOrCpu) {
  Script script(After(minutes(1)));
  EXPECT_EQ(script.Pass(100, 0), 1);
  ++script.sample.log_bytes;
  EXPECT_EQ(script.Pass(200, 0), 1);
  ++script.sample.points;
  EXPECT_EQ(script.Pass(200, 0), 1);
  EXPECT_EQ(script.Pass(5, 100), 0);
  EXPECT_EQ(script.Pass(200, 0), 1);
}

TEST(HangWatch, AScriptThatSleepsButLogsIsNotHung) {
  Script script(After(minutes(1)));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(script.Pass(58, 0), 0);
    EXPECT_EQ(script.Pass(1, 0, 1), 0);
  }
}

TEST(HangWatch, AScriptThatBurnsCpuSilentlyIsNotHung) {
  Script script(After(minutes(1)));
  EXPECT_EQ(script.Pass(5'000, 2), 0);
  EXPECT_EQ(script.Pass(100, 0), 1);
}

TEST(HangWatch, WorkLongAgoDoesNotHideAHang) {
  Script script(After(minutes(1)));
  EXPECT_EQ(script.Pass(36'000, 100), 0);
  EXPECT_EQ(script.Pass(61, 0), 1);
}

TEST(HangWatch, IsNeverToldWhenSwitchedOff) {
  Script script(After(minutes(1), "off"));
  EXPECT_EQ(script.Pass(5'000, 0), 0);
  EXPECT_FALSE(script.watch.limit());
}

TEST(HangWatch, WithoutALimitItNeedsStepsFirst) {
  Script script({});
  EXPECT_EQ(script.Pass(20'000, 0), 0);
  EXPECT_EQ(script.Steps(HangWatch::kMinSteps, 2), 0);
  EXPECT_FALSE(script.watch.limit()) << "the first step has no known begin";
  EXPECT_EQ(script.Steps(1, 2), 0);
  EXPECT_EQ(script.watch.limit(), HangWatch::kLeast);
  EXPECT_EQ(script.Pass(400, 0), 1);
  EXPECT_EQ(script.last.median_step, Seconds(2));
  EXPECT_EQ(script.last.limit_source, "the least for jobs without limits.hang.after");
}

TEST(HangWatch, LongStepsMakeALongLimit) {
  LimitSpec limits;
  limits.hang_steps = 20;
  Script script(limits);
  EXPECT_EQ(script.Steps(10, 60), 0);
  EXPECT_EQ(script.watch.limit(), minutes(20));
  EXPECT_EQ(script.Pass(20 * 60 - 2, 0), 0);
  EXPECT_EQ(script.Pass(60, 0), 1);
  EXPECT_EQ(script.last.limit_source, "20 steps of 1 m");
}

TEST(HangWatch, TheMedianIsNotMovedByAFewSlowSteps) {
  Script script({});
  EXPECT_EQ(script.Steps(20, 10), 0);
  EXPECT_EQ(script.Steps(3, 1'000), 0);
  EXPECT_EQ(script.watch.limit(), Seconds(500));
}

TEST(HangWatch, AScriptThatTellsManyStepsAtOnceHasTimeForThem) {
  Script script({});
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(script.Pass(1'199, 0.1), 0) << "waits for others: no CPU between two reports";
    script.sample.step = 1'000 * (i + 1);
    ++script.sample.points;
    EXPECT_EQ(script.Pass(1, 0), 0);
  }
  EXPECT_EQ(script.watch.limit(), minutes(60));
  EXPECT_EQ(script.Pass(3'700, 0), 1);
  EXPECT_EQ(script.last.limit_source, "3 times the usual 20 m between two metrics");
}

TEST(HangWatch, AStepThatGoesBackIsNoStepTime) {
  Script script({});
  EXPECT_EQ(script.Steps(10, 20), 0);
  script.sample.step = 0;
  EXPECT_EQ(script.Pass(30'000, 50), 0);
  EXPECT_EQ(script.Steps(10, 20), 0);
  EXPECT_EQ(script.watch.limit(), Seconds(1'000));
}

TEST(HangWatch, ANightOfSleepIsNoHang) {
  Script script(After(minutes(5)));
  EXPECT_EQ(script.Pass(60, 0), 0);
  script.sample.now += std::chrono::hours(8);
  EXPECT_EQ(script.Pass(220, 0), 0);
  EXPECT_EQ(script.Pass(60, 0), 1);
}

TEST(HangWatch, ACounterThatFallsIsNotWork) {
  Script script(After(minutes(1)));
  EXPECT_EQ(script.Pass(30, 100), 0);
  script.sample.cpu_ns = 0;  // a worker ended, and with it its time
  EXPECT_EQ(script.Pass(61, 0), 1);
}

// Against an evaluator that keeps all samples and starts from the first each time.
class Reference {
 public:
  explicit Reference(Millis limit) : limit_(limit) {}

  bool Hung(const HangSample& sample) {
    samples_.push_back(sample);
    std::vector<int64_t> at{0};
    std::vector<uint64_t> cpu{0};
    size_t sign = 0;
    uint64_t steps = 0;
    for (size_t i = 1; i < samples_.size(); ++i) {
      const auto& before = samples_[i - 1];
      const auto& now = samples_[i];
      at.push_back(at.back() + std::min<int64_t>((now.now - before.now).count(), 10'000));
      cpu.push_back(cpu.back() + (now.cpu_ns > before.cpu_ns ? now.cpu_ns - before.cpu_ns : 0));
      if (now.log_bytes != before.log_bytes || now.points != before.points) sign = i;
      if (before.step && *now.step > *before.step) steps += *now.step - *before.step;
    }
    const size_t last = samples_.size() - 1;
    const bool known = steps_needed == 0 || steps >= steps_needed;
    bool hung = known && at[last] - at[sign] >= limit_.count();
    size_t from = 0;
    if (at[last] < limit_.count()) hung = false;
    while (from + 1 <= last && at[last] - at[from + 1] >= limit_.count()) ++from;
    const double span = static_cast<double>(at[last] - at[from]) * 1e6;
    const bool busy = 100.0 * static_cast<double>(cpu[last] - cpu[from]) / span >= 1.0;
    if (busy) hung = false;
    const bool full = known && at[last] >= limit_.count();
    if (sign == last || (full && busy)) told_ = false;
    if (!hung || told_) return false;
    told_ = true;
    return true;
  }

  uint64_t steps_needed = 0;

 private:
  const Millis limit_;
  std::vector<HangSample> samples_;
  bool told_ = false;
};

void RunHistory(uint32_t seed, int* hangs) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  LimitSpec limits;
  const bool by_steps = below(2) == 0;
  if (!by_steps) limits.hang_after = Seconds(20 + below(300));
  HangWatch watch(limits);
  Reference reference(by_steps ? HangWatch::kLeast : limits.hang_after);
  if (by_steps) reference.steps_needed = HangWatch::kMinSteps;
  HangSample sample;
  sample.step = 0;
  uint32_t mood = 0;
  // Steps are fast, so that the limit by steps is the least one; with the first ones fast, the
  // few slow ones later do not move the median.
  constexpr int kFastSteps = 20;
  for (int i = 0; i < 900; ++i) {
    if (below(100) == 0) mood = below(5);
    if (by_steps && i < kFastSteps) mood = 1;
    if (below(200) == 0) sample.now += minutes(below(30));
    if (below(200) == 0) sample.cpu_ns /= 2;
    if (mood == 1) sample.step = *sample.step + 1 + below(5), ++sample.points;
    if (mood == 2) sample.log_bytes += below(3);
    if (mood == 3) sample.cpu_ns += below(20'000'000);
    if (mood == 4) sample.cpu_ns += below(10) == 0 ? 900'000'000 : 0;
    const bool expected = reference.Hung(sample);
    ASSERT_EQ(watch.Sample(sample).has_value(), expected) << "sample " << i;
    *hangs += expected;
    sample.now += Millis(1'000 + below(200));
  }
}

TEST(HangWatch, RandomHistoriesAgreeWithTheWholeStory) {
  int hangs = 0;
  if (const char* only = std::getenv("ATHANOR_SEED"); only != nullptr) {
    RunHistory(static_cast<uint32_t>(std::atoll(only)), &hangs);
    return;
  }
  const uint32_t base = std::random_device{}();
  for (uint32_t i = 0; i < 60; ++i) {
    SCOPED_TRACE("ATHANOR_SEED=" + std::to_string(base + i));
    RunHistory(base + i, &hangs);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(hangs, 10) << "these histories show nothing";
}

}  // namespace
}  // namespace athanor
