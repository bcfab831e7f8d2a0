#include "track/run_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "record/db/database.h"
#include "record/runs/run_store.h"
#include "track/run_names.h"

namespace athanor {
namespace {

using Pairs = RunBook::Pairs;

// A book over an empty store, and the changes it gave.
struct Opened {
  TestDir dir;
  std::unique_ptr<SeriesStore> series = SeriesStore::Open(dir.path()).value();
  RunBook book{*series};
  uint64_t seq = 0;

  Opened() {
    RunBatch all;
    all.experiments = {{0, "Default", "mlflow-artifacts:/0", false, 0, 0}};
    book.Load(all);
  }
  JobId Run(const std::string& name, int64_t started_ms, int64_t experiment = 0) {
    NewRun run{JobId::New(), experiment, name, "ann", started_ms, {}};
    EXPECT_TRUE(book.AddRun(run));
    return run.id;
  }
  void Log(JobId run, const std::string& metric, double value, int64_t step = 1) {
    const RunBook::Storing storing(book, run);
    EXPECT_TRUE(series->Append(run, {1, 0, 0, {{++seq, {metric, step, step * 1'000'000, value}}}}));
  }
  // Names of the runs found, in order.
  std::string Find(const std::string& filter, const std::vector<std::string>& order = {},
                   ViewType view = ViewType::kActive) {
    RunQuery query;
    auto clauses = ParseFilter(filter, Searched::kRuns);
    EXPECT_TRUE(clauses) << clauses.error().what;
    query.filter = *clauses;
    query.order = *ParseOrder(order, Searched::kRuns);
    query.view = view;
    std::string names;
    book.Look(book.Search(query).runs, [&](const RunEntry& run) { names += run.name + " "; });
    return names;
  }
};

TEST(RunBook, FindsRunsByMetricParamTagAndAttribute) {
  Opened o;
  const JobId a = o.Run("a", 1);
  const JobId b = o.Run("b", 2);
  const JobId c = o.Run("c", 3);
  o.Log(a, "loss", 0.5);
  o.Log(b, "loss", 0.25);
  ASSERT_TRUE(o.book.LogParams(a, {{"opt", "adam"}}));
  ASSERT_TRUE(o.book.LogParams(c, {{"opt", "SGD"}}));
  ASSERT_TRUE(o.book.SetTags(b, {{"team", "vision"}}));
  EXPECT_EQ(o.Find(""), "c b a ");
  EXPECT_EQ(o.Find("metrics.loss < 0.4"), "b ");
  // A run without the key never passes, also not a !=.
  EXPECT_EQ(o.Find("metrics.loss != 7"), "b a ");
  EXPECT_EQ(o.Find("params.opt != 'adam'"), "c ");
  EXPECT_EQ(o.Find("params.opt ILIKE 's%'"), "c ");
  EXPECT_EQ(o.Find("params.opt IS NULL"), "b ");
  EXPECT_EQ(o.Find("tags.team = 'vision' AND metrics.loss > 0"), "b ");
  EXPECT_EQ(o.Find("attributes.run_name IN ('a', 'c')"), "c a ");
  EXPECT_EQ(o.Find("start_time >= 2", {"start_time ASC"}), "b c ");
  EXPECT_EQ(o.Find("attributes.run_id = '" + b.value.ToHex() + "'"), "b ");
  EXPECT_EQ(o.Find("metrics.unheard > 0"), "");
}

TEST(RunBook, SortsNumbersThenNaNThenWhatIsMissingBothWays) {
  Opened o;
  o.Log(o.Run("nan", 1), "m", std::nan(""));
  o.Log(o.Run("two", 2), "m", 2);
  o.Run("none", 3);
  o.Log(o.Run("one", 4), "m", 1);
  o.Log(o.Run("inf", 5), "m", std::numeric_limits<double>::infinity());
  EXPECT_EQ(o.Find("", {"metrics.m"}), "one two inf nan none ");
  EXPECT_EQ(o.Find("", {"metrics.m DESC"}), "inf two one nan none ");
  EXPECT_EQ(o.Find("", {"metrics.unheard", "attributes.run_name"}), "inf nan none one two ");
}

TEST(RunBook, SeesANewPointAtTheNextSearch) {
  Opened o;
  const JobId run = o.Run("a", 1);
  o.Log(run, "loss", 5, 1);
  EXPECT_EQ(o.Find("metrics.loss = 5"), "a ");
  o.Log(run, "loss", 4, 2);
  EXPECT_EQ(o.Find("metrics.loss = 5"), "");
  EXPECT_EQ(o.Find("metrics.loss = 4"), "a ");
}

// Planted bugs: a removed run's row left in a column; a column not told of a refreshed run; a moved
// or deleted run's row not updated.
TEST(RunBook, WhatASearchFindsIsWhatTheRunsSayAfterAnyHistory) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](size_t most) { return static_cast<size_t>(random() % most); };
  Opened o;
  int64_t other = 0;
  ASSERT_TRUE(o.book.AddExperiment("other", "", {}, 1, other));
  struct Known {
    int64_t experiment = 0;
    int64_t started = 0;
    bool deleted = false;
    std::optional<double> m;
  };
  std::map<JobId, Known> known;
  const auto any = [&] {
    return std::next(known.begin(), static_cast<ptrdiff_t>(below(known.size())));
  };
  for (int step = 1; step < 400; ++step) {
    const size_t what = known.empty() ? 0 : below(7);
    if (what == 0) {
      const Known run{below(2) == 0 ? 0 : other, static_cast<int64_t>(below(9)), false, {}};
      known[o.Run("r", run.started, run.experiment)] = run;
    } else if (what <= 2) {
      const auto at = any();
      at->second.m = static_cast<double>(below(5));
      o.Log(at->first, "m", *at->second.m, step);
    } else if (what == 3) {
      const auto at = any();
      at->second.deleted = !at->second.deleted;
      ASSERT_TRUE(o.book.SetRunDeleted(at->first, at->second.deleted, 1));
    } else if (what == 4 && below(3) == 0) {
      const auto at = any();
      o.book.Remove(at->first);
      known.erase(at);
    } else if (what == 5 && !any()->second.deleted) {
      const auto at = std::find_if(known.begin(), known.end(),
                                   [](const auto& run) { return !run.second.deleted; });
      at->second.experiment = at->second.experiment == 0 ? other : 0;
      ASSERT_TRUE(o.book.MoveRun(at->first, at->second.experiment));
    }
    RunQuery query;
    query.experiments = {other};
    query.view = ViewType::kActive;
    query.order = *ParseOrder({"metrics.m DESC"}, Searched::kRuns);
    if (below(2) == 0) query.filter = *ParseFilter("metrics.m >= 2", Searched::kRuns);
    std::vector<std::tuple<double, int64_t, JobId>> expected;
    for (const auto& [id, run] : known) {
      if (run.deleted || run.experiment != other) continue;
      if (!query.filter.empty() && run.m.value_or(-1) < 2) continue;
      expected.emplace_back(-run.m.value_or(-1), -run.started, id);
    }
    std::sort(expected.begin(), expected.end());
    std::vector<JobId> order;
    for (const auto& one : expected) order.push_back(std::get<2>(one));
    ASSERT_EQ(o.book.Search(query).runs, order) << "at step " << step;
  }
}

TEST(RunBook, PagesWithoutGapsOrRepeats) {
  Opened o;
  for (int i = 0; i < 25; ++i) o.Log(o.Run(std::to_string(i), 1), "m", i % 3);
  RunQuery query;
  query.order = *ParseOrder({"metrics.m DESC"}, Searched::kRuns);
  const auto whole = o.book.Search(query).runs;
  ASSERT_EQ(whole.size(), 25u);
  std::vector<JobId> paged;
  query.limit = 4;
  for (query.offset = 0; query.offset < 25; query.offset += 4) {
    const auto page = o.book.Search(query);
    EXPECT_EQ(page.matched, 25u);
    paged.insert(paged.end(), page.runs.begin(), page.runs.end());
  }
  EXPECT_EQ(paged, whole);
}

// Planted bugs: a page begins at a number of runs; the place does not look at runs that are equal.
TEST(RunBook, PagesHaveEachRunOnceWhateverComesAndGoes) {
  for (const std::vector<std::string>& order : {std::vector<std::string>{},
                                                {"metrics.m DESC"},
                                                {"params.p", "metrics.m"},
                                                {"attributes.run_name DESC"},
                                                {"attributes.run_id"},
                                                {"tags.none", "start_time ASC"}}) {
    Opened o;
    std::vector<JobId> there;
    const auto add = [&](int i) {
      const JobId run = o.Run("name-" + std::to_string(i % 7), i % 5);
      if (i % 3 != 0) o.Log(run, "m", i % 4);
      const std::string value = std::string(20, 'x') + std::to_string(i % 3);
      if (i % 2 == 0) (void)o.book.LogParams(run, {{"p", value}}).value();
      return run;
    };
    for (int i = 0; i < 60; ++i) there.push_back(add(i));
    RunQuery query;
    query.order = *ParseOrder(order, Searched::kRuns);
    query.limit = 7;
    std::map<JobId, int> seen;
    for (int page = 0;; ++page) {
      const auto found = o.book.Search(query);
      for (const JobId run : found.runs) ++seen[run];
      if (!found.next) break;
      ASSERT_LT(page, 100);
      query.after = DecodePlace(EncodePlace(*found.next)).value();
      // One that was seen goes for good, one is deleted, and others come.
      o.book.Remove(found.runs.front());
      ASSERT_TRUE(o.book.SetRunDeleted(found.runs.back(), true, 1));
      for (int i = 0; i < 2; ++i) (void)add(page * 2 + i);
    }
    for (const JobId run : there) EXPECT_EQ(seen[run], 1) << (order.empty() ? "" : order[0]);
    for (const auto& [run, times] : seen) EXPECT_EQ(times, 1);
  }
}

TEST(RunBook, ALongListIsTheSameInPagesAndWhole) {
  Opened o;
  std::mt19937 random(5);
  for (int i = 0; i < 9'500; ++i) (void)o.Run("r" + std::to_string(random() % 50), random() % 40);
  RunQuery query;
  query.order = *ParseOrder({"attributes.run_name"}, Searched::kRuns);
  query.limit = SIZE_MAX;
  const auto whole = o.book.Search(query).runs;
  ASSERT_EQ(whole.size(), 9'500u);
  std::vector<JobId> paged;
  query.limit = 1'000;
  while (true) {
    auto page = o.book.Search(query);
    paged.insert(paged.end(), page.runs.begin(), page.runs.end());
    if (!page.next) break;
    query.after = std::move(page.next);
  }
  EXPECT_EQ(paged, whole);
  query.after.reset();
  query.offset = 5'000;
  const auto middle = o.book.Search(query).runs;
  EXPECT_TRUE(std::equal(middle.begin(), middle.end(), whole.begin() + 5'000));
  query.any_order = true;
  EXPECT_EQ(o.book.Search(query).runs.size(), 9'500u);
}

TEST(RunBook, ARunIsFoundByNameAndByDigitsOfItsId) {
  Opened o;
  const JobId old = o.Run("twin", 1);
  const JobId young = o.Run("twin", 2);
  const JobId other = o.Run("other", 3);
  EXPECT_EQ(*o.book.Resolve("twin"), young);
  EXPECT_EQ(*o.book.Resolve(old.ToString().substr(18)), old);
  EXPECT_EQ(*o.book.Resolve(ToUpper(old.ToString().substr(18))), old);
  EXPECT_EQ(*o.book.Resolve(other.value.ToHex().substr(0, 31)), other);
  EXPECT_EQ(o.book.Resolve(other.value.ToHex().substr(0, 5)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(o.book.Resolve(other.ToString().substr(0, 4)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(o.book.Resolve("nobody").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(o.book.Resolve(old.ToString().substr(23)).error().code, ErrorCode::kNotFound)
      << "short";
  ASSERT_TRUE(o.book.UpdateRun(young, {std::nullopt, std::nullopt, "new-name"}));
  EXPECT_EQ(*o.book.Resolve("twin"), old);
  EXPECT_EQ(*o.book.Resolve("new-name"), young);
  ASSERT_TRUE(o.book.SetRunDeleted(old, true, 1));
  EXPECT_FALSE(o.book.Resolve("twin"));
  o.book.Remove(young);
  EXPECT_FALSE(o.book.Resolve("new-name"));
}

// A book with what it keeps of metrics, over a store that counts nothing: started again and again.
struct Kept : Opened {
  std::unique_ptr<Database> database = Database::Open(dir / "db", ServerMigrations()).value();
  RunStore store{*database};
  std::unique_ptr<KeptMetrics> file;
  std::unique_ptr<RunBook> again;

  void Start() {
    file = std::make_unique<KeptMetrics>(dir / "kept", dir.path());
    again = std::make_unique<RunBook>(*series);
    ASSERT_TRUE(again->Load(store, file.get()));
  }
  JobId Begin(const std::string& name) {
    NewRun run{JobId::New(), 0, name, "ann", 1, {}};
    EXPECT_TRUE(store.Commit(*again->AddRun(run)));
    return run.id;
  }
  void Add(JobId run, double value, int64_t step) {
    const RunBook::Storing storing(*again, run);
    EXPECT_TRUE(series->Append(run, {1, 0, 0, {{++seq, {"m", step, step, value}}}}));
  }
  double Last(JobId run) {
    double last = -1;
    again->Look({run}, [&](const RunEntry& entry) {
      if (!entry.metrics.empty()) last = entry.metrics[0].last;
    });
    return last;
  }
};

// Planted bugs: a touch is not written down; it is written after the points.
TEST(RunBook, KeptMetricsAreThoseOfThePointsWheneverTheServerDies) {
  Kept o;
  o.Start();
  const JobId a = o.Begin("a");
  const JobId b = o.Begin("b");
  o.Add(a, 1, 1);
  o.Add(b, 1, 1);
  EXPECT_EQ(o.again->KeepSome(10, true), 0u);
  o.Start();
  EXPECT_TRUE(o.again->IsFresh(a));
  EXPECT_EQ(o.Last(a), 1);
  o.Add(a, 2, 2);
  o.Start();  // as after kill -9: nothing was kept at the end
  EXPECT_FALSE(o.again->IsFresh(a));
  EXPECT_TRUE(o.again->IsFresh(b));
  EXPECT_EQ(o.Last(a), 2);
  EXPECT_EQ(o.again->KeepSome(10, true), 0u);
  {
    const RunBook::Storing storing(*o.again, a);
    const auto file = ReadFile(o.dir / "kept");
    EXPECT_TRUE(o.series->Append(a, {1, 0, 0, {{++o.seq, {"m", 3, 3, 3}}}}));
    EXPECT_EQ(*ReadFile(o.dir / "kept"), *file) << "it is told before";
    (void)o.again->KeepSome(10, true);
    EXPECT_EQ(*ReadFile(o.dir / "kept"), *file) << "none is kept while its points come";
    auto dead = KeptMetrics(o.dir / "kept", o.dir.path());
    RunBook after(*o.series);
    ASSERT_TRUE(after.Load(o.store, &dead));
    EXPECT_FALSE(after.IsFresh(a));
  }
  o.again->Remove(b);
  o.Start();
  EXPECT_EQ(o.Last(a), 3);
  EXPECT_FALSE(o.again->IsFresh(b)) << "its row is still in the store, its metrics are not";
}

TEST(RunBook, AReloadBelievesNothingThatWasKept) {
  Kept o;
  o.Start();
  const JobId a = o.Begin("a");
  o.Add(a, 1, 1);
  EXPECT_EQ(o.again->KeepSome(10, true), 0u);
  ASSERT_TRUE(o.again->Load(o.store));
  o.Add(a, 2, 2);
  o.Start();
  EXPECT_EQ(o.Last(a), 2);
}

// Planted bug: use a place without checking that the same run is still there.
TEST(RunBook, APageIsLookedAtAsItWasAlsoWhenRunsHaveLeftTheirPlaces) {
  Opened o;
  std::vector<JobId> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(o.Run("r" + std::to_string(i), i));
  const auto page = o.book.Search({});
  ASSERT_EQ(page.runs.size(), 20u);
  // The last runs take the places of those that go.
  for (const int gone : {0, 3, 4, 19}) o.book.Remove(runs[static_cast<size_t>(gone)]);
  std::vector<JobId> seen;
  o.book.Look(page, [&](const RunEntry& run) { seen.push_back(run.id); });
  std::vector<JobId> left;
  for (const JobId id : page.runs) {
    if (o.book.Has(id)) left.push_back(id);
  }
  EXPECT_EQ(left.size(), 16u);
  EXPECT_EQ(seen, left);
}

// Planted bug: two that refresh the same run, and the older summary is written last.
TEST(RunBook, ManyMayAskWhilePointsCome) {
  Opened o;
  std::vector<JobId> runs;
  for (int i = 0; i < 40; ++i) runs.push_back(o.Run("r" + std::to_string(i), i));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      RunQuery query;
      query.order = *ParseOrder({i == 0 ? "metrics.m" : "attributes.run_name"}, Searched::kRuns);
      std::map<JobId, double> last;
      while (!done) {
        const auto found = o.book.Search(query);
        EXPECT_GE(found.runs.size(), 39u);
        o.book.Look(found.runs, [&](const RunEntry& run) {
          const double value = run.metrics.empty() ? 0 : run.metrics[0].last;
          EXPECT_GE(value, last[run.id]) << "a value that was seen is gone";
          last[run.id] = value;
        });
        (void)CountNames(o.book, {});
      }
    });
  }
  for (int step = 1; step <= 30; ++step) {
    for (const JobId run : runs) o.Log(run, "m", step, step);
    if (step % 10 == 0) o.book.Remove(o.Run("gone", 1));
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(o.Find("metrics.m = 30 AND attributes.run_name = 'r7'"), "r7 ");
}

TEST(RunBook, AParamKeepsItsFirstValue) {
  Opened o;
  const JobId run = o.Run("a", 1);
  ASSERT_TRUE(o.book.LogParams(run, {{"a", "1"}}));
  const auto same = o.book.LogParams(run, {{"a", "1"}});
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->empty());
  const auto other = o.book.LogParams(run, {{"b", "2"}, {"a", "2"}});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("Param with key='a' was already logged with value='1'"),
            std::string::npos);
  // All or nothing.
  EXPECT_EQ(o.Find("params.b = '2'"), "");
  EXPECT_FALSE(o.book.LogParams(run, {{"c", "1"}, {"c", "2"}}));
}

TEST(RunBook, DeletingAnExperimentHidesItsRunsAndRestoringBringsThemBack) {
  Opened o;
  int64_t id = 0;
  ASSERT_TRUE(o.book.AddExperiment("e", "", {}, 1, id));
  EXPECT_EQ(o.book.AddExperiment("e", "", {}, 1, id).error().code, ErrorCode::kConflict);
  const JobId run = o.Run("a", 1, id);
  const auto set = [&](bool deleted, int64_t now_ms) {
    ASSERT_TRUE(o.book.SetExperimentDeleted(id, deleted, now_ms));
    RunSweep sweep;
    while (!sweep.done) (void)o.book.SweepRuns(id, deleted, now_ms, sweep);
  };
  set(true, 2);
  EXPECT_EQ(o.Find(""), "");
  EXPECT_EQ(o.Find("", {}, ViewType::kDeleted), "a ");
  EXPECT_EQ(o.book.SetTags(run, {{"k", "v"}}).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(o.book.AddRun({JobId::New(), id, "b", "", 1, {}}));
  set(false, 3);
  EXPECT_EQ(o.Find(""), "a ");
}

TEST(RunBook, ComesBackAsItWasFromItsOwnChanges) {
  Opened o;
  RunBatch kept;
  int64_t id = 0;
  auto keep = [&](Result<RunBatch> batch) {
    ASSERT_TRUE(batch) << batch.error().what;
    for (auto& row : batch->experiments) kept.experiments.push_back(row);
    for (auto& row : batch->runs) kept.runs.push_back(row);
    for (auto& row : batch->labels) kept.labels.push_back(row);
  };
  keep(o.book.AddExperiment("e", "", {{"k", "v"}}, 1, id));
  const JobId run = JobId::New();
  keep(o.book.AddRun({run, id, "a", "ann", 5, {{"t", "1"}}}));
  keep(o.book.LogParams(run, {{"lr", "0.1"}}));
  keep(o.book.UpdateRun(run, {RunStatus::kFinished, 9, "renamed"}));
  RunBook again(*o.series);
  again.Load(kept);
  int seen = 0;
  again.Look({run}, [&](const RunEntry& entry) {
    ++seen;
    EXPECT_EQ(entry.status, RunStatus::kFinished);
    EXPECT_EQ(entry.name, "renamed");
    EXPECT_EQ(std::distance(entry.params.begin(), entry.params.end()), 1);
    EXPECT_EQ(std::distance(entry.tags.begin(), entry.tags.end()), 2);
    EXPECT_EQ(again.UserOf(entry), "ann");
  });
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(again.ExperimentNamed("e")->tags.at("k"), "v");
  EXPECT_EQ(again.TagOf(run, "mlflow.runName"), "renamed");
  EXPECT_EQ(again.ArtifactsOf(run), o.book.ArtifactsOf(run));
  EXPECT_EQ(again.RowsOf(run, false).runs.at(0).artifacts, kept.runs.at(0).artifacts);
}

TEST(RunBook, AJobIsARunWhoseStatusOnlyItsRecordChanges) {
  Opened o;
  JobRecord record;
  record.id = JobId::New();
  record.user = "ann";
  record.spec.name = "brisk-heron";
  record.spec.experiment = "digits";
  record.spec.params = {{"lr", "0.1", Param::Kind::kNumber}};
  record.created = {1000};
  const auto batch = o.book.Mirror(record);
  EXPECT_EQ(batch.experiments.size(), 1u);
  EXPECT_EQ(batch.runs.size(), 1u);
  EXPECT_TRUE(o.book.Mirror(record).empty());
  EXPECT_EQ(o.book.RowsOf(record.id, false).labels.size(), 0u);
  EXPECT_EQ(o.book.RowsOf(record.id, true).labels.size(), batch.labels.size());
  EXPECT_EQ(o.book.RowsOf(record.id, true).runs.at(0).name, "brisk-heron");
  EXPECT_TRUE(o.book.RowsOf(JobId::New(), true).empty());
  EXPECT_EQ(o.Find("status = 'SCHEDULED' AND params.lr = '0.1'"), "brisk-heron ");
  ASSERT_TRUE(o.book.UpdateRun(record.id, {RunStatus::kFinished, 5, std::nullopt}));
  EXPECT_EQ(o.Find("status = 'FINISHED'"), "");
  record.state = JobState::kCompleted;
  record.ended = {2000};
  EXPECT_EQ(o.book.Mirror(record).runs.size(), 1u);
  EXPECT_EQ(o.Find("status = 'FINISHED'"), "brisk-heron ");
}

TEST(RunBook, NamesAreCountedOverTheRunsThatAreThere) {
  Opened o;
  int64_t other = 0;
  ASSERT_TRUE(o.book.AddExperiment("other", "x", {}, 1, other));
  const JobId a = o.Run("a", 1);
  const JobId b = o.Run("b", 2, other);
  const JobId gone = o.Run("gone", 3);
  for (const JobId run : {a, b, gone}) o.Log(run, "val/Loss", 1);
  o.Log(a, "loss", 1);
  o.Log(gone, "only-gone", 1);
  ASSERT_TRUE(o.book.LogParams(a, {{"lr", "1"}}));
  ASSERT_TRUE(o.book.SetRunDeleted(gone, true, 1));
  const auto names = [&](const NameQuery& query) {
    std::string text;
    const auto page = CountNames(o.book, query);
    for (const auto& row : page.names) text += row.name + "=" + std::to_string(row.runs) + " ";
    return text + std::to_string(page.total);
  };
  EXPECT_EQ(names({}), "val/Loss=2 loss=1 2");
  EXPECT_EQ(names({KeyKind::kMetric, "LOSS", {}, 1}), "loss=1 2") << "that begins with it";
  EXPECT_EQ(names({KeyKind::kMetric, "", other, 9}), "val/Loss=1 1");
  EXPECT_EQ(names({KeyKind::kParam, "", {}, 9}), "lr=1 1");
  EXPECT_EQ(names({KeyKind::kTag, "no such", {}, 9}), "0");
}

}  // namespace
}  // namespace athanor
