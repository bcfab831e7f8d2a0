// One suite over every strategy, and what each promises by itself.
#include "tune/strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tune/session.h"

namespace athanor::tune {
namespace {

constexpr const char* kMixed = R"([
  {"name":"lr","type":"float","scale":"log","low":1e-5,"high":1},
  {"name":"opt","type":"cat","choices":["a","b",true]},
  {"name":"m","type":"float","scale":"reverse_log","low":0,"high":0.999,"if":"opt == a"},
  {"name":"layers","type":"int","low":1,"high":12}])";

// What a trial is given, as JSON.
struct Given {
  int64_t id = 0;
  Json params;
  bool repeated = false;
};

Result<Given> Next(Session& session) {
  ATHANOR_TRY(auto asked, session.Ask());
  return Given{asked.id, session.space().ToJson(asked.values), asked.repeated};
}

double Bowl(const Json& p) {
  double value = std::pow(std::log10(p["lr"].get<double>()) + 2, 2) +
                 0.1 * std::pow(p["layers"].get<double>() - 4, 2);
  return value + (p["opt"] == "a" ? p["m"].get<double>() : 0.5);
}

std::unique_ptr<Session> Start(const char* space, Strategy strategy, uint64_t seed = 1) {
  SessionOptions options;
  options.settings.seed = seed;
  options.settings.strategy = strategy;
  auto session = Session::Create(*ParseJson(space), options);
  EXPECT_TRUE(session) << session.error().what;
  return std::move(*session);
}

class EveryStrategy : public testing::TestWithParam<Strategy> {};

TEST_P(EveryStrategy, IsAPureFunctionOfSeedAndHistory) {
  auto one = Start(kMixed, GetParam()), two = Start(kMixed, GetParam());
  auto other = Start(kMixed, GetParam(), 2);
  bool differs = false;
  for (int i = 0; i < 40; ++i) {
    const auto a = Next(*one), b = Next(*two), c = Next(*other);
    ASSERT_TRUE(a && b && c);
    EXPECT_EQ(a->params, b->params) << i;
    differs |= a->params != c->params;
    // What the session remembers between asks changes nothing.
    if (i % 13 == 12) {
      const auto cold = Ask(one->space(), one->options().settings, [&] {
        History history(one->space());
        for (const auto& trial : one->history().trials()) {
          if (trial.id == a->id) break;
          EXPECT_TRUE(history.Asked(trial.id, trial.values));
          EXPECT_TRUE(history.Told(trial.id, trial.value));
        }
        return history;
      }());
      ASSERT_TRUE(cold);
      EXPECT_EQ(one->space().ToJson(cold->values), a->params);
    }
    ASSERT_TRUE(one->Tell(a->id, Bowl(a->params)));
    ASSERT_TRUE(two->Tell(b->id, Bowl(b->params)));
    ASSERT_TRUE(other->Tell(c->id, Bowl(c->params)));
  }
  EXPECT_EQ(differs, GetParam() != Strategy::kGrid);
}

TEST_P(EveryStrategy, RepeatsNothingInASpaceWithAFloat) {
  auto session = Start(kMixed, GetParam());
  std::set<std::string> seen;
  std::vector<Given> open;
  for (int i = 0; i < 60; ++i) {
    auto asked = Next(*session);
    ASSERT_TRUE(asked);
    EXPECT_FALSE(asked->repeated);
    EXPECT_TRUE(seen.insert(DumpJson(asked->params)).second) << DumpJson(asked->params);
    open.push_back(std::move(*asked));
    // Eight run at once; they come back in another order than they were asked for.
    if (open.size() == 8) {
      const auto at = open.begin() + (i * 5) % 8;
      ASSERT_TRUE(session->Tell(at->id, Bowl(at->params)));
      open.erase(at);
    }
  }
}

TEST_P(EveryStrategy, StandsHardInput) {
  struct Row {
    const char* name;
    std::function<std::optional<double>(int)> value;
  };
  const Row rows[] = {
      {"constant", [](int) { return 1.0; }},
      {"all fail", [](int) { return std::nullopt; }},
      {"NaN", [](int i) { return i % 2 ? std::nan("") : 1.0 * i; }},
      {"infinite", [](int i) { return i % 3 ? HUGE_VAL : -HUGE_VAL; }},
      {"huge", [](int i) { return (i % 2 ? 1 : -1) * 1e308; }},
      {"huge among others", [](int i) { return i % 5 ? 0.01 * i : 1e308; }},
      {"tiny", [](int i) { return i * 1e-310; }},
      {"all but one fail", [](int i) { return i == 7 ? std::optional(1.0) : std::nullopt; }},
  };
  for (const auto& row : rows) {
    auto session = Start(kMixed, GetParam());
    for (int i = 0; i < 30; ++i) {
      const auto asked = Next(*session);
      ASSERT_TRUE(asked) << row.name;
      ASSERT_TRUE(session->space().FromJson(asked->params, false)) << row.name;
      ASSERT_TRUE(session->Tell(asked->id, row.value(i))) << row.name;
    }
  }
}

TEST_P(EveryStrategy, SaysWhenADiscreteSpaceIsUsedUp) {
  auto session = Start(R"([{"name":"n","type":"int","low":1,"high":5},
                           {"name":"c","type":"cat","choices":["a","b"]}])",
                       GetParam());
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    const auto asked = Next(*session);
    ASSERT_TRUE(asked);
    EXPECT_FALSE(asked->repeated);
    EXPECT_TRUE(seen.insert(DumpJson(asked->params)).second);
    ASSERT_TRUE(session->Tell(asked->id, asked->params["n"].get<double>()));
  }
  const auto more = Next(*session);
  if (GetParam() == Strategy::kGrid) {
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, ErrorCode::kExhausted);
  } else {
    ASSERT_TRUE(more);
    EXPECT_TRUE(more->repeated);
  }
}

TEST_P(EveryStrategy, TakesSpacesOfOneValue) {
  auto session = Start(R"([{"name":"x","type":"float","low":3,"high":3}])", GetParam());
  const auto asked = Next(*session);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->params["x"], 3.0);
  ASSERT_TRUE(session->Tell(asked->id, 1.0));
  const auto more = Next(*session);
  EXPECT_TRUE(!more || more->repeated);
}

TEST_P(EveryStrategy, TakesTenThousandChoicesAndFiveHundredDimensions) {
  Json wide = Json::array(), choices = Json::array();
  for (int i = 0; i < 500; ++i) {
    wide.push_back({{"name", "x" + std::to_string(i)}, {"type", "float"}, {"low", 0}, {"high", 1}});
  }
  for (int i = 0; i < 10'000; ++i) choices.push_back(i);
  const Json many = {{{"name", "c"}, {"type", "cat"}, {"choices", choices}}};
  for (const Json& space : {wide, many}) {
    SessionOptions options;
    options.settings.strategy = GetParam();
    auto session = Session::Create(space, options);
    ASSERT_TRUE(session);
    for (int i = 0; i < 20; ++i) {
      const auto asked = Next(**session);
      if (GetParam() == Strategy::kGrid && !asked) {
        EXPECT_EQ(asked.error().code, ErrorCode::kInvalid);
        break;
      }
      ASSERT_TRUE(asked);
      ASSERT_TRUE((*session)->Tell(asked->id, 1.0 / (i + 1)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy,
                         testing::Values(Strategy::kAutomatic, Strategy::kRandom, Strategy::kSobol,
                                         Strategy::kGrid, Strategy::kBayes, Strategy::kTpe),
                         [](const auto& each) { return std::string(NameOf(each.param)); });

double BestAfter(Strategy strategy, uint64_t seed, int trials) {
  auto session = Start(kMixed, strategy, seed);
  for (int i = 0; i < trials; ++i) {
    const auto asked = Next(*session);
    EXPECT_TRUE(asked);
    EXPECT_TRUE(session->Tell(asked->id, Bowl(asked->params)));
  }
  return session->Best()->value;
}

TEST(Strategies, LearningBeatsDrawing) {
  double random = 0, tpe = 0, bayes = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    random += BestAfter(Strategy::kRandom, seed, 50);
    tpe += BestAfter(Strategy::kTpe, seed, 50);
    bayes += BestAfter(Strategy::kBayes, seed, 50);
  }
  EXPECT_LT(tpe, 0.8 * random);
  EXPECT_LT(bayes, 0.3 * random);
}

TEST(Strategies, BayesLearnsWhereTrialsFail) {
  auto session = Start(R"([{"name":"x","type":"float","low":0,"high":1},
                           {"name":"y","type":"float","low":0,"high":1}])",
                       Strategy::kBayes);
  int failed_late = 0;
  for (int i = 0; i < 80; ++i) {
    const auto asked = Next(*session);
    ASSERT_TRUE(asked);
    const double x = asked->params["x"], y = asked->params["y"];
    // Better and better towards the half that fails.
    const bool fails = x + 0.3 * y > 0.6;
    if (i >= 40) failed_late += fails;
    ASSERT_TRUE(session->Tell(asked->id, fails ? std::nullopt : std::optional(-x + y * y)));
  }
  EXPECT_LE(failed_late, 10);
  EXPECT_LT(session->Best()->value, -0.5);
}

// Planted bug: follow the model alone, which stays where it has seen the best value.
TEST(Strategies, BayesLooksElsewhereFromAStep) {
  int found = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    auto session = Start(R"([{"name":"x","type":"float","low":0,"high":1},
                             {"name":"y","type":"float","low":0,"high":1}])",
                         Strategy::kBayes, seed);
    for (int i = 0; i < 100; ++i) {
      const auto asked = Next(*session);
      ASSERT_TRUE(asked);
      const double x = asked->params["x"], y = asked->params["y"];
      // A wide step, and far from it a small pit that nothing leads to.
      const bool pit = std::abs(x - 0.9) < 0.06 && std::abs(y - 0.9) < 0.06;
      ASSERT_TRUE(session->Tell(asked->id, pit ? 0.0 : x + y < 0.8 ? 0.5 : 1.0 + x + y));
    }
    found += session->Best()->value == 0.0;
  }
  EXPECT_GE(found, 4);
}

TEST(Grid, AsksEveryCellOnceAndFailedOnesOnceMore) {
  auto session = Start(R"([{"name":"x","type":"float","scale":"log","low":0.01,"high":1,"levels":3},
                           {"name":"n","type":"int","low":1,"high":2}])",
                       Strategy::kGrid);
  std::vector<double> xs;
  for (int i = 0; i < 6; ++i) {
    const auto asked = Next(*session);
    ASSERT_TRUE(asked);
    xs.push_back(asked->params["x"]);
    ASSERT_TRUE(session->Tell(asked->id, i == 2 ? std::nullopt : std::optional(1.0)));
  }
  EXPECT_DOUBLE_EQ(xs[0], 0.01);
  EXPECT_NEAR(xs[1], 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(xs[2], 1.0);
  const auto again = Next(*session);
  ASSERT_TRUE(again);
  EXPECT_DOUBLE_EQ(again->params["x"].get<double>(), xs[2]);
  ASSERT_TRUE(session->Tell(again->id, std::nullopt));
  EXPECT_FALSE(Next(*session));
}

}  // namespace
}  // namespace athanor::tune
