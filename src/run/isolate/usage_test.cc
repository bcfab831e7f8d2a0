#include "run/isolate/usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text/text.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

constexpr char kUser[] = R"(
import os, time
x = b'x' * (80 << 20)
if os.fork() == 0:
    while True: time.sleep(100)
t = time.process_time()
while time.process_time() - t < 0.2: pass
open('up', 'w').write('up')
time.sleep(1000)
)";

void CheckSample(test::TestAttempt& attempt, const AttemptCgroup& cgroup) {
  attempt.Python(kUser);
  attempt.Launch();
  attempt.Await("up");
  const auto sample = SampleUsage(cgroup, attempt.pid());
  ASSERT_TRUE(sample.has_value()) << sample.error().what;
  EXPECT_GT(sample->memory_bytes, 80u << 20);
  EXPECT_GE(sample->cpu_ns, 150'000'000u);
  EXPECT_EQ(2, sample->processes);
  ASSERT_TRUE(KillAllNow(attempt.pidfd()).ok());
  attempt.WaitForEnd();
}

TEST(Usage, AddsUpTheSupervisorsDescendants) {
  test::TestAttempt attempt;
  CheckSample(attempt, {});
  EXPECT_EQ(ErrorCode::kNotFound, SampleUsage({}, attempt.pid()).error().code);
}

TEST(Usage, ReadsTheCgroup) {
  CgroupLimits limits;
  limits.memory_bytes = 300 << 20;
  const auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(),
                                           "test-usage-" + std::to_string(::getpid()), limits);
  if (cgroup.Find("memory") == nullptr) GTEST_SKIP() << Join(cgroup.off, "; ");
  test::TestAttempt attempt;
  attempt.plan.cgroups = cgroup.joins;
  CheckSample(attempt, cgroup);
  // The supervisor is gone, the counters are not.
  const auto after = SampleUsage(cgroup, attempt.pid());
  ASSERT_TRUE(after.has_value());
  EXPECT_GE(after->memory_peak, 80u << 20);
  EXPECT_EQ(300u << 20, after->memory_limit);
  EXPECT_TRUE(RemoveAttemptCgroup(cgroup).ok());
}

}  // namespace
}  // namespace athanor
