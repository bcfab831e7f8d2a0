#include "run/supervisor/oom_log.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr char kRecord[] =
    "6,1903,11449147671,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
    "mems_allowed=0,oom_memcg=/own/athanor/01m7q,task_memcg=/own/athanor/01m7q,task=python3,"
    "pid=20625,uid=0\n SUBSYSTEM=x\n";

TEST(OomLog, ReadsWhoWasKilled) {
  const auto kill = ParseOomKill(kRecord);
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->cgroup, "/own/athanor/01m7q");
  EXPECT_EQ(kill->name, "python3");
  EXPECT_EQ(kill->pid, 20625);
}

TEST(OomLog, ANameThatLooksLikeTheRestIsAName) {
  const auto kill = ParseOomKill("oom-kill:x,task_memcg=/a/b,task=a,pid=1,x,pid=7,uid=0");
  ASSERT_TRUE(kill);
  EXPECT_EQ(kill->name, "a,pid=1,x");
  EXPECT_EQ(kill->pid, 7);
}

TEST(OomLog, OtherRecordsAreNone) {
  for (const char* record :
       {"", "6,1,1,-;swapcached 0\n", "oom-kill:", "oom-kill:,task=x,pid=1",
        "oom-kill:,task_memcg=/a,task=x,pid=", "oom-kill:,task_memcg=/a,task=x,pid=-4,uid=0",
        "oom-kill:,pid=1,task_memcg=/a,task=x", "oom-kill:,task_memcg=/a\n,task=x,pid=1"}) {
    EXPECT_FALSE(ParseOomKill(record)) << record;
  }
}

TEST(OomLog, ALogThatIsNotThereHoldsNothing) {
  EXPECT_FALSE(FindOomKill("01m7q", "/no/such/log"));
  EXPECT_FALSE(FindOomKill("01m7q", "/dev/null"));
  EXPECT_FALSE(FindOomKill("no-such-attempt"));
}

}  // namespace
}  // namespace athanor
