// The parts RunBook is made of, each against the plain way to do the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "base/text/text.h"
#include "track/run_counts.h"
#include "track/run_index.h"
#include "track/run_labels.h"
#include "track/run_place.h"
#include "track/run_table.h"

namespace athanor {
namespace {

unsigned Seed() { return static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()); }

// Planted bugs: an entry put behind one of a higher key; a longer value that does not push what
// follows.
TEST(RunLabels, AreAMapAfterAnyHistory) {
  SCOPED_TRACE("seed " + std::to_string(Seed()));
  std::mt19937 random(Seed());
  RunLabels labels;
  std::map<uint32_t, std::string> known;
  for (int i = 0; i < 5'000; ++i) {
    const uint32_t key = random() % 3 == 0 ? random() % 100'000 : random() % 200;
    if (random() % 4 == 0) {
      EXPECT_EQ(labels.Erase(key), known.erase(key) > 0);
    } else {
      const std::string value(random() % 10 == 0 ? random() % 9'000 : random() % 20,
                              static_cast<char>('a' + random() % 26));
      const auto at = known.find(key);
      const auto was = at == known.end()     ? RunLabels::Was::kNew
                       : at->second == value ? RunLabels::Was::kSame
                                             : RunLabels::Was::kChanged;
      ASSERT_EQ(labels.Put(key, value), was);
      known[key] = value;
    }
    if (i % 50 != 0) continue;
    std::map<uint32_t, std::string> seen;
    uint32_t last = 0;
    for (const auto label : labels) {
      EXPECT_TRUE(seen.empty() || label.key > last);
      last = label.key;
      seen[label.key] = label.value;
    }
    ASSERT_EQ(seen, known);
    EXPECT_EQ(labels.Find(key).has_value(), known.contains(key));
    EXPECT_EQ(labels.empty(), known.empty());
  }
}

// Planted bugs: a bucket that is split keeps runs that belong to the new one; a run that is renamed
// stays under its old name.
TEST(RunIndex, FindsRunsByNameAndLastDigitsAfterAnyHistory) {
  SCOPED_TRACE("seed " + std::to_string(Seed()));
  std::mt19937 random(Seed());
  RunIndex index;
  index.Reserve(random() % 300);  // fewer and more than come
  std::vector<std::unique_ptr<RunEntry>> runs;
  for (int i = 0; i < 3'000; ++i) {
    const auto what = runs.empty() ? 0 : random() % 8;
    const size_t at = runs.empty() ? 0 : random() % runs.size();
    if (what < 5) {
      auto run = std::make_unique<RunEntry>();
      run->id = JobId::New();
      run->name = "run-" + std::to_string(random() % 300);
      run->started_ms = static_cast<int64_t>(random() % 5);
      index.Add(*run);
      runs.push_back(std::move(run));
    } else if (what == 5) {
      index.Rename(*runs[at], "run-" + std::to_string(random() % 300));
    } else if (what == 6) {
      runs[at]->deleted = !runs[at]->deleted;
    } else {
      index.Remove(*runs[at]);
      runs.erase(runs.begin() + static_cast<ptrdiff_t>(at));
    }
    if (runs.empty()) continue;
    const std::string name = "run-" + std::to_string(random() % 300);
    const RunEntry* expected = nullptr;
    for (const auto& run : runs) {
      if (run->deleted || run->name != name) continue;
      if (expected == nullptr || run->started_ms > expected->started_ms ||
          (run->started_ms == expected->started_ms && run->id < expected->id)) {
        expected = run.get();
      }
    }
    ASSERT_EQ(index.Named(name), expected);
    const auto& any = *runs[random() % runs.size()];
    const std::string digits = any.id.ToString().substr(26 - (4 + random() % 20));
    std::set<const RunEntry*> ending;
    for (const auto& run : runs) {
      if (!run->deleted && EndsWith(run->id.ToString(), digits)) ending.insert(run.get());
    }
    const auto found = index.EndingWith(digits, SIZE_MAX);
    ASSERT_EQ(std::set(found.begin(), found.end()), ending);
  }
  EXPECT_TRUE(index.EndingWith("abc", 9).empty());
  EXPECT_TRUE(index.EndingWith("!!!!", 9).empty());
  EXPECT_TRUE(index.EndingWith(std::string(40, '0'), 9).empty());
}

TEST(SortKey, RisesWithTheOrder) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<SortValue> numbers = {{}, SortValue::Number(std::nan(""))};
  for (const double value :
       {-inf, -1e300, -1.0, -1e-310, -0.0, 0.0, 1e-310, 1.0, 2.0, 1e300, inf}) {
    numbers.push_back(SortValue::Number(value));
  }
  std::vector<SortValue> texts = {{}};
  for (const std::string_view text :
       {"", "a", "aa", "abcdefgh", "abcdefghi", "b", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    texts.push_back(SortValue::Text(text));
  }
  for (const auto& values : {numbers, texts}) {
    for (const bool ascending : {true, false}) {
      for (const auto& a : values) {
        for (const auto& b : values) {
          if (SortKey(a, ascending) < SortKey(b, ascending)) {
            EXPECT_LT(Compare(a, b, ascending), 0);
          }
        }
      }
    }
  }
  EXPECT_LT(SortKey(SortValue::Number(1), true), SortKey(SortValue::Number(2), true));
}

TEST(RunPlace, ComesBackFromItsToken) {
  RunPlace place;
  place.values = {{SortValue::Rank::kValue, -0.5, "", false},
                  {SortValue::Rank::kValue, 0, std::string("a\0b", 3), true},
                  {SortValue::Rank::kMissing, 0, "", false}};
  place.started_ms = -7;
  place.id = JobId::New();
  const auto again = DecodePlace(EncodePlace(place));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, place.id);
  EXPECT_EQ(again->started_ms, -7);
  ASSERT_EQ(again->values.size(), 3u);
  EXPECT_EQ(again->values[0].number, -0.5);
  EXPECT_EQ(again->values[1].text, place.values[1].text);
  EXPECT_TRUE(again->values[1].is_text);
  EXPECT_EQ(again->values[2].rank, SortValue::Rank::kMissing);
  const std::string token = EncodePlace(place);
  for (const std::string& bad : {std::string(), std::string("x"), token.substr(0, 20),
                                 token + "AAAA", Base64("{\"offset\": 5}")}) {
    EXPECT_FALSE(DecodePlace(bad)) << bad;
  }
}

TEST(RunCounts, CountWhatRunsThatAreNotDeletedHave) {
  RunCounts counts;
  RunEntry run;
  run.experiment = 3;
  run.started_ms = 5;
  run.params.Put(1, "x");
  run.tags.Put(2, "y");
  run.metrics = {{1, 0, 0, 0, 0, 0, 1}};
  counts.Add(run);
  counts.Add(run);
  EXPECT_EQ(counts.Of(3).runs, 2);
  EXPECT_EQ(counts.Of(3).last_ms, 5);
  EXPECT_EQ(counts.Keys(KeyKind::kParam, 3), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(counts.Keys(KeyKind::kTag, std::nullopt), (std::vector<uint32_t>{0, 0, 2}));
  EXPECT_EQ(counts.Keys(KeyKind::kMetric, 3), (std::vector<uint32_t>{0, 2}));
  EXPECT_TRUE(counts.Keys(KeyKind::kMetric, 4).empty());
  counts.Take(run);
  run.deleted = true;
  counts.Add(run);
  EXPECT_EQ(counts.Of(3).runs, 1);
  EXPECT_EQ(counts.Keys(KeyKind::kParam, 3), (std::vector<uint32_t>{0, 1}));
}

// Planted bug: a run that came while a column is being filled is left out of it.
TEST(RunTable, AColumnThatIsFilledInPartsIsWholeInTheEnd) {
  RunTable table;
  std::vector<std::unique_ptr<RunEntry>> runs;
  const auto add = [&] {
    auto run = std::make_unique<RunEntry>();
    run->metrics = {{7, static_cast<double>(runs.size()), 0, 0, 0, 0, 1}};
    table.Add(*run);
    runs.push_back(std::move(run));
  };
  for (int i = 0; i < 10; ++i) add();
  EXPECT_TRUE(table.FillColumn(7, 4));
  EXPECT_TRUE(table.Column(7).empty());
  add();
  runs[2]->metrics[0].last = 100;
  table.UpdateMetrics(*runs[2]);
  runs[8]->metrics[0].last = 101;
  table.UpdateMetrics(*runs[8]);
  while (table.FillColumn(7, 4)) {
  }
  const auto column = table.Column(7);
  ASSERT_EQ(column.size(), 11u);
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(column[i], runs[i]->metrics[0].last);
  add();
  EXPECT_EQ(table.Column(7).size(), 12u);
  table.Remove(*runs[3]);
  EXPECT_EQ(table.Column(7)[3], 11);
  EXPECT_EQ(runs[11]->place, 3u);
  EXPECT_TRUE(table.FillColumn(8, 4));
  table.Remove(*runs[5]);  // drops the one that is not whole
  EXPECT_EQ(table.Column(7).size(), 10u);
  while (table.FillColumn(8, 4)) {
  }
  EXPECT_TRUE(std::ranges::all_of(table.Column(8), RunTable::IsMissing));
}

}  // namespace
}  // namespace athanor
