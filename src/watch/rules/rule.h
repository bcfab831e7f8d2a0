// One rule over one stream of values: is it true now? It knows nothing about names, ranks, time, or
// whether it was reported already; RuleSet does. New kinds of rules on scalars are added behind
// this interface and to job/rules.
//
// Not thread-safe; a value per (rule, metric, rank).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "job/spec.h"

namespace athanor {

// What one point showed.
struct Verdict {
  bool holds = false;
  double value = 0;       // what was compared: the point's value, or one computed from the window
  std::string threshold;  // the limit, for a person; set only if it holds
};

class ScalarRule {
 public:
  virtual ~ScalarRule() = default;
  // Points without a step belong to the step before them. A step at or before the last one first
  // takes back that one and everything after it: a run that was resumed or a value written again
  // counts once. If it goes back further than what is in memory (window and some hundred points),
  // it starts again.
  virtual Verdict Point(std::optional<int64_t> step, double value) = 0;
};

// For specs with their defaults that CheckRule accepts; null for no_progress, which is
// about time.
std::unique_ptr<ScalarRule> MakeScalarRule(const RuleSpec& spec);

// As rules show numbers: shortest exact form; "NaN", "Infinity", "-Infinity".
std::string ShowValue(double value);

}  // namespace athanor
