#include "tune/strategy.h"

#include <algorithm>

#include "base/text/format.h"
#include "base/text/text.h"
#include "tune/strategies.h"

namespace athanor::tune {
namespace {

struct NamedStrategy {
  Strategy strategy;
  std::string_view name;
};
constexpr NamedStrategy kRows[] = {{Strategy::kAutomatic, "auto"}, {Strategy::kRandom, "random"},
                                   {Strategy::kSobol, "sobol"},    {Strategy::kGrid, "grid"},
                                   {Strategy::kBayes, "bayes"},    {Strategy::kTpe, "tpe"}};

constexpr size_t kStep = 5;            // trials of the same value
constexpr uint64_t kListed = 100'000;  // spaces up to here are searched for what is left

size_t FreeDimensions(const Space& space) {
  return static_cast<size_t>(std::count_if(space.parameters().begin(), space.parameters().end(),
                                           [](const Parameter& p) { return !p.fixed(); }));
}

Strategy Chosen(const Space& space, const Settings& settings, const History& history) {
  if (settings.strategy != Strategy::kAutomatic) return settings.strategy;
  return FreeDimensions(space) <= kBayesDimensions && history.told().size() <= kBayesTrials
             ? Strategy::kBayes
             : Strategy::kTpe;
}

// If this many trials gave exactly the best value, they are on a step, as of a tree's depth or of
// an accuracy, and a model of them sees nothing beyond its edge.
bool OnAStep(const History& history) {
  const Trial* best = history.Best();
  if (best == nullptr) return false;
  size_t level = 0;
  for (const size_t told : history.told()) {
    const Trial& trial = history.trials()[told];
    level += trial.state == Trial::State::kDone && trial.value == best->value ? 1 : 0;
  }
  return level >= kStep;
}

// A point that was not tried: by chance, and if the space is nearly used up, by going through it
// from a random cell. The best trial again if there is none.
Suggestion Fallback(const Space& space, const Settings& settings, const History& history) {
  Random random(settings.seed, history.asks(), kFallback);
  for (int attempt = 0; attempt < 200; ++attempt) {
    auto values = space.Decode(RandomPoint(space, random));
    if (!history.Tried(values)) return {std::move(values), false};
  }
  if (const auto cells = space.cells(); cells && *cells <= kListed) {
    const uint64_t from = random.Below(static_cast<uint32_t>(*cells));
    for (uint64_t i = 0; i < *cells; ++i) {
      auto values = space.Decode(space.CellPoint((from + i) % *cells));
      if (!history.Tried(values)) return {std::move(values), false};
    }
  }
  if (const auto* best = history.Best()) return {best->values, true};
  return {space.Decode(RandomPoint(space, random)), true};
}

}  // namespace

std::string_view NameOf(Strategy strategy) {
  for (const auto& row : kRows) {
    if (row.strategy == strategy) return row.name;
  }
  return "auto";
}

Result<Strategy> StrategyNamed(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.strategy;
  }
  return Fail(Error{ErrorCode::kInvalid, "no such strategy: " + Printable(name),
                    "strategies are auto, bayes, tpe, sobol, random, grid"}
                  .Id("ATH-T0003"));
}

Result<Suggestion> Ask(const Space& space, const Settings& settings, const History& history,
                       Memory* memory) {
  Memory own;
  if (!memory) memory = &own;
  std::vector<Point> points;
  switch (Chosen(space, settings, history)) {
    case Strategy::kGrid: {
      if (!GridSize(space)) {
        return Fail(Error{ErrorCode::kInvalid, "the grid is too large",
                          "fewer \"levels\", or another strategy"}
                        .Why("more than 10^15 points")
                        .Id("ATH-T0003"));
      }
      auto values = GridValues(space, history);
      if (!values) {
        return Fail(Error{ErrorCode::kExhausted, "every point of the grid has been tried",
                          "more \"levels\", or another strategy"}
                        .Why(fmt::format("{} points", *GridSize(space)))
                        .Id("ATH-T0004"));
      }
      return Suggestion{std::move(*values), false};
    }
    case Strategy::kRandom:
      break;
    case Strategy::kSobol:
      points.push_back(SobolPoint(space, settings.seed, history.asks()));
      break;
    case Strategy::kAutomatic:
    case Strategy::kBayes:
      // Every other ask then takes a random point: Fallback draws one.
      if (history.asks() % 2 == 1 && OnAStep(history)) break;
      points = BayesPoints(space, settings, history, *memory);
      if (points.empty()) points.push_back(SobolPoint(space, settings.seed, history.asks()));
      break;
    case Strategy::kTpe:
      points = TpePoints(space, settings, history);
      if (points.empty()) points.push_back(SobolPoint(space, settings.seed, history.asks()));
      break;
  }
  for (const auto& point : points) {
    auto values = space.Decode(point);
    if (!history.Tried(values)) return Suggestion{std::move(values), false};
  }
  return Fallback(space, settings, history);
}

}  // namespace athanor::tune
