// One rule over one stream of values: is it true now? Knows nothing of names,
// ranks, time, or whether somebody was told already; RuleSet does. New kinds of
// rules on scalars are added behind this interface and to job/rules.
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
  double value = 0;       // what was compared: the point's, or what was made of the window
  std::string threshold;  // with what, for a person; filled only when it holds
};

class ScalarRule {
 public:
  virtual ~ScalarRule() = default;
  // Points without a step belong to the step before them. A step at or before the
  // last one takes it and everything behind it back first: a run that was resumed
  // or a value written again counts once. So far back that nothing is left in
  // memory (window and some hundred points), it starts afresh.
  virtual Verdict Point(std::optional<int64_t> step, double value) = 0;
};

// For specs with their defaults that CheckRule accepts; null for no_progress, which is
// about time.
std::unique_ptr<ScalarRule> MakeScalarRule(const RuleSpec& spec);

// As rules show numbers: shortest exact form; "NaN", "Infinity", "-Infinity".
std::string ShowValue(double value);

}  // namespace athanor
