// Ask(): the next trial of a search, as a pure function of the space, the settings (with the
// seed) and the history. The same arguments give the same bytes, in this process or another, on
// any x86-64 machine: resuming is replaying.
//
// Strategies: random; sobol (a scrambled low-discrepancy sequence); grid (every combination of
// levels once, failed ones again at the end); bayes (a warped Gaussian process, log expected
// improvement, running trials fantasised, failures learnt); tpe (a multivariate tree of Parzen
// estimators, for many dimensions or trials); automatic, which takes bayes up to kBayesTrials
// trials and kBayesDimensions dimensions and tpe beyond.
//
// No strategy repeats a trial while there is another one. When a space without floats is used up,
// `repeated` says so and the best trial is returned again; a grid ends with kExhausted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tune/history.h"
#include "tune/space.h"

namespace athanor::tune {

enum class Strategy { kAutomatic, kRandom, kSobol, kGrid, kBayes, kTpe };
// "auto", "random", "sobol", "grid", "bayes", "tpe".
std::string_view NameOf(Strategy strategy);
Result<Strategy> StrategyNamed(std::string_view name);

inline constexpr size_t kBayesTrials = 1500;
inline constexpr size_t kBayesDimensions = 60;

struct Settings {
  uint64_t seed = 0;
  Strategy strategy = Strategy::kAutomatic;
};

struct Suggestion {
  Assignment values;
  bool repeated = false;  // the space is used up: this trial is a repetition
};

// What asks of one search share to be quick: fitted hyper-parameters by history length. Leaving it
// out, or passing an empty one, changes no byte of any suggestion. One search each, one thread.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  struct Fits;
  Fits& fits() { return *fits_; }

 private:
  std::unique_ptr<Fits> fits_;
};

// kExhausted when a grid is done. kInvalid when a grid is too large to number.
Result<Suggestion> Ask(const Space& space, const Settings& settings, const History& history,
                       Memory* memory = nullptr);

// How many points a grid over the space has; empty beyond 10^15.
std::optional<uint64_t> GridSize(const Space& space);

}  // namespace athanor::tune
