#include "record/runs/kept_metrics.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <map>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

// Holds what a file says in the end.
class Known : public KeptMetrics::Reader {
 public:
  struct Run {
    Resumes resumes;
    std::vector<RunMetric> metrics;
    bool touched = false;
  };
  uint32_t KeyOf(std::string_view name) override {
    names.emplace_back(name);
    return static_cast<uint32_t>(names.size() - 1);
  }
  bool Kept(JobId run, Resumes resumes, std::vector<RunMetric> metrics) override {
    const bool fresh = !runs.contains(run);
    runs[run] = {std::move(resumes), std::move(metrics), false};
    return fresh;
  }
  void Touched(JobId run) override { runs[run].touched = true; }

  std::map<JobId, Run> runs;
  std::vector<std::string> names;
};

struct Opened {
  TestDir dir;
  std::string path = dir / "metrics.kept";
  std::string series = dir / "series";
  std::vector<std::string> names{"loss", "acc"};
  KeptMetrics::NameOf name_of = [this](uint32_t key) -> const std::string& { return names[key]; };

  Opened() { EXPECT_TRUE(MakeDirs(series)); }
  Known Read(std::unique_ptr<KeptMetrics>& kept) {
    Known known;
    kept = std::make_unique<KeptMetrics>(path, series);
    kept->Read(known);
    return known;
  }
};

TEST(KeptMetrics, ComeBackAsTheyWere) {
  Opened o;
  std::unique_ptr<KeptMetrics> kept;
  EXPECT_TRUE(o.Read(kept).runs.empty());
  const JobId a = JobId::New(), b = JobId::New();
  const RunMetric loss{0, 0.25, 7, 1'234, 0.125, 9, 100};
  const RunMetric acc{1, std::nan(""), -3, -5, std::nan(""), std::nan(""), 1};
  EXPECT_TRUE(kept->Keep(a, {{2, 40}}, {loss, acc}, o.name_of));
  EXPECT_TRUE(kept->Keep(b, {}, {acc}, o.name_of));
  kept->Touched(b);
  const Known known = o.Read(kept);
  EXPECT_EQ(known.names, o.names);
  ASSERT_EQ(known.runs.size(), 2u);
  const auto& run = known.runs.at(a);
  EXPECT_EQ(run.resumes, (Resumes{{2, 40}}));
  EXPECT_FALSE(run.touched);
  ASSERT_EQ(run.metrics.size(), 2u);
  EXPECT_EQ(run.metrics[0].last, 0.25);
  EXPECT_EQ(run.metrics[0].min, 0.125);
  EXPECT_EQ(run.metrics[0].max, 9);
  EXPECT_EQ(run.metrics[0].step, 7);
  EXPECT_EQ(run.metrics[0].wall_ms, 1'234);
  EXPECT_EQ(run.metrics[0].count, 100u);
  EXPECT_TRUE(std::isnan(run.metrics[1].last));
  EXPECT_EQ(run.metrics[1].step, -3);
  EXPECT_EQ(run.metrics[1].wall_ms, -5);
  EXPECT_TRUE(known.runs.at(b).touched);
  // A file that goes on has the same names.
  EXPECT_TRUE(kept->Keep(b, {}, {loss}, o.name_of));
  EXPECT_EQ(o.Read(kept).names, o.names);
}

// Planted bug: what follows a torn record is kept, and the next records are written after it.
TEST(KeptMetrics, AreReadUpToATornOrDamagedRecordAndGoOnThere) {
  Opened o;
  std::unique_ptr<KeptMetrics> kept;
  (void)o.Read(kept);
  const JobId a = JobId::New(), b = JobId::New(), c = JobId::New();
  EXPECT_TRUE(kept->Keep(a, {}, {{0, 1, 0, 0, 1, 1, 1}}, o.name_of));
  const std::string before = *ReadFile(o.path);
  EXPECT_TRUE(kept->Keep(b, {}, {{0, 2, 0, 0, 2, 2, 1}}, o.name_of));
  const std::string whole = *ReadFile(o.path);
  for (size_t cut = before.size(); cut < whole.size(); ++cut) {
    ASSERT_EQ(::truncate(o.path.c_str(), static_cast<off_t>(cut)), 0);
    EXPECT_EQ(o.Read(kept).runs.size(), 1u) << cut;
    EXPECT_TRUE(kept->Keep(c, {}, {{0, 3, 0, 0, 3, 3, 1}}, o.name_of));
    EXPECT_EQ(o.Read(kept).runs.size(), 2u) << cut;
    std::string bad = whole;
    bad[cut] = static_cast<char>(bad[cut] ^ 0x40);
    ASSERT_TRUE(ReplaceFile(o.path, bad));
    EXPECT_EQ(o.Read(kept).runs.size(), 1u) << cut;
    ASSERT_TRUE(ReplaceFile(o.path, whole));
  }
}

TEST(KeptMetrics, OfAnotherBootOrACopiedHomeAreNotBelieved) {
  Opened o;
  std::unique_ptr<KeptMetrics> kept;
  (void)o.Read(kept);
  EXPECT_TRUE(kept->Keep(JobId::New(), {}, {{0, 1, 0, 0, 1, 1, 1}}, o.name_of));
  const std::string whole = *ReadFile(o.path);
  std::string other = whole;
  other[10] = other[10] == '0' ? '1' : '0';  // of the boot's id
  ASSERT_TRUE(ReplaceFile(o.path, other));
  EXPECT_TRUE(o.Read(kept).runs.empty());
  ASSERT_TRUE(ReplaceFile(o.path, whole));
  EXPECT_EQ(o.Read(kept).runs.size(), 1u);
  ASSERT_EQ(::rename(o.series.c_str(), (o.dir / "old").c_str()), 0);
  ASSERT_TRUE(MakeDirs(o.series));
  EXPECT_TRUE(o.Read(kept).runs.empty());
}

TEST(KeptMetrics, AreBegunAnewWhenMostOfTheFileNoLongerCounts) {
  Opened o;
  std::unique_ptr<KeptMetrics> kept;
  (void)o.Read(kept);
  const JobId run = JobId::New();
  const std::vector<RunMetric> many(100, RunMetric{0, 1, 0, 0, 1, 1, 1});
  for (int i = 0; i < 2'000; ++i) EXPECT_TRUE(kept->Keep(run, {}, many, o.name_of));
  EXPECT_FALSE(kept->IsBloated());
  (void)o.Read(kept);
  EXPECT_TRUE(kept->IsBloated());
  kept->BeginAnew();
  EXPECT_TRUE(kept->Keep(run, {}, many, o.name_of));
  EXPECT_EQ(o.Read(kept).runs.size(), 1u);
  EXPECT_FALSE(kept->IsBloated());
}

// Planted bug: the file stays when a touch could not be written.
TEST(KeptMetrics, NothingIsBelievedAfterAWriteThatFailed) {
  Opened o;
  std::unique_ptr<KeptMetrics> kept;
  (void)o.Read(kept);
  EXPECT_TRUE(kept->Keep(JobId::New(), {}, {{0, 1, 0, 0, 1, 1, 1}}, o.name_of));
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit none = before;
  none.rlim_cur = 10;
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  kept->Touched(JobId::New());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old);
  EXPECT_FALSE(Exists(o.path));
  EXPECT_FALSE(kept->Keep(JobId::New(), {}, {}, o.name_of));
  EXPECT_TRUE(o.Read(kept).runs.empty());
}

}  // namespace
}  // namespace athanor
