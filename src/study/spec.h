// StudySpec is what a user asked a tuning job for: the job whose parameters are searched, what is
// measured, the space, the method, and the limits. A value; made from JSON (the `tune:` section of
// a job file with its job, or a request) and validated.
//
//   {"name": "digits", "metric": "val_loss", "goal": "minimize", "value": "last",
//    "space": {"lr": {"type": "float", "scale": "log", "low": 1e-5, "high": 1},
//              "optimizer": ["sgd", "adam"]},                       or a list, as Space::Parse
//              takes
//    "strategy": "auto", "seed": 7, "max_trials": 50, "parallel": 4,
//    "budget": {"money": 5.0, "time": "2h"}, "target": 0.1, "no_improvement": 20, "converge": true,
//    "max_failures": 10, "early_stopping": {"rule": "asha", "first": 1, "last": 81, "eta": 3},
//    "warm_start": ["earlier-study"], "job": {...}}
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"
#include "job/spec.h"
#include "tune/strategy.h"

namespace athanor {

struct EarlyStopSpec {
  enum class Rule { kNone, kAsha, kHyperband, kMedian, kCurve };
  Rule rule = Rule::kNone;
  int64_t first = 1;  // step of the first decision (grace of median and curve)
  int64_t last = 0;   // the step at which a trial is complete; needed by all but median
  double eta = 3;     // of asha and hyperband
  // Of asha and hyperband: trials wait at each rung and continue from their checkpoint if they are
  // among the best, instead of continuing until it is clear that they are not.
  bool promote = false;
  double chance = 0.05;  // of curve: a trial less likely than this to beat the best is stopped
  bool operator==(const EarlyStopSpec&) const = default;
};
std::string_view NameOf(EarlyStopSpec::Rule rule);

struct StudySpec {
  std::string name;
  std::string metric;
  bool maximize = false;
  bool best_value = false;  // a trial counts with its best value instead of its last
  std::string space;        // JSON, a list in the form of tune::Space::Parse
  tune::Strategy strategy = tune::Strategy::kAutomatic;
  std::optional<uint64_t> seed;  // always set once it was accepted
  int64_t max_trials = 50;
  int64_t parallel = 1;
  int64_t budget_micros = 0;                 // 0: none; as the jobs' costs
  std::chrono::milliseconds budget_time{0};  // 0: none; from the start of the study
  std::optional<double> target;
  int64_t no_improvement = 0;  // trials in a row without a better one; 0: not used
  bool converge = false;
  int64_t max_failures = 10;  // that many failures before the first value end the study
  EarlyStopSpec early;
  std::vector<std::string> warm_start;  // earlier studies, by reference; by id once accepted
  // A warm start takes over values, and needs the same objective; with `transfer`, it only tries
  // the best parameters first, of any objective (warm_start.h).
  bool transfer = false;
  JobSpec job;  // its params are those that are not searched
  std::string origin = "native";
  std::string request;  // the original request of another API, to be returned
  bool operator==(const StudySpec&) const = default;
};

inline constexpr int64_t kMostTrials = 100'000;
inline constexpr int64_t kMostParallel = 1'000;

// `job` may be missing: then it is empty, and the caller fills it. kInvalid with what, why and
// hint; unknown keys are refused.
Result<StudySpec> StudySpecFromJson(const Json& json);
Json ToJson(const StudySpec& spec);  // reads back to the same

// What may be changed of a study that exists: max_trials, parallel, budget, target,
// no_improvement, and `ranges` of its space (tune::WithRanges). Any other key is kInvalid.
Status ChangeStudySpec(StudySpec& spec, const Json& changes);

// The job of one trial: the study's job, with `params` (an object of plain values) over its own.
JobSpec TrialJob(const StudySpec& spec, const Json& params, int64_t number);

}  // namespace athanor
