// The catalogue of rules on metrics: what each kind means, which parameters it has, and what to do
// when it fires. One table for the check at submit, the evaluation in watch/rules and the manual.
// Pure; nothing here looks at points.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace athanor {

struct RuleParam {
  std::string_view name;      // the key in the job file: "value", "window", ...
  std::string_view fallback;  // as shown to people; "required" if there is none
  std::string_view meaning;
};

struct RuleRow {
  std::string_view kind;              // "plateau"
  std::string_view title;             // "fires when ..."
  std::string_view explain;           // a paragraph: when exactly, and when it has recovered
  std::string_view advice;            // a sentence a person can act on
  std::span<const RuleParam> params;  // besides name, metric, action and url, which all have

  bool Takes(std::string_view param) const;
};

std::span<const RuleRow> RuleCatalogue();
const RuleRow* FindRule(std::string_view kind);

inline constexpr uint32_t kMaxRuleWindow = 10'000;  // points
// A rule that fired has recovered after this many points in a row for which it is not true, so that
// a value that oscillates around its threshold is reported once.
inline constexpr uint32_t kRecoverPoints = 5;
inline constexpr std::string_view kRuleActions[] = {"mark", "stop", "retry", "webhook"};

// kInvalid with what, why and hint: an unknown kind (with the nearest known one), a missing or
// impossible value, a key the kind does not take, an unknown action, a webhook without https://
// address.
Status CheckRule(const RuleSpec& spec);

// The spec with every default of its kind filled in (name, value of divergence,
// window, after). For one that CheckRule accepts.
RuleSpec WithRuleDefaults(RuleSpec spec);

// What to say of the rules that could not fire because the job never logged a metric of their name,
// one text each: "rule nan on 'los': no metric of that name was logged; did you mean loss?".
// `logged` are the names of all metrics that the job has.
std::vector<std::string> RulesWithoutMetric(const std::vector<RuleSpec>& rules,
                                            const std::vector<std::string>& logged);

// Whether `pattern`, in which each * stands for any text (also with '/', also empty), matches all
// of `name`.
bool MetricMatches(std::string_view pattern, std::string_view name);

}  // namespace athanor
