#include "job/rules.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kMostNamed = 5;  // metrics, in a text

constexpr RuleParam kPointParams[] = {
    {"window", "1", "so many points in a row"},
};
constexpr RuleParam kLimitParams[] = {
    {"value", "required", "the limit"},
    {"window", "1", "so many points in a row"},
};
constexpr RuleParam kPlateauParams[] = {
    {"window", "50", "points without a new best"},
    {"min_delta", "0", "a value must be better than the best by more than this"},
    {"goal", "min", "which way is better: min or max"},
};
constexpr RuleParam kDivergenceParams[] = {
    {"value", "1 for min, 0.5 for max", "how much worse than the best, as a share of it"},
    {"window", "10", "points whose median is looked at"},
    {"min_delta", "0", "and worse by at least this"},
    {"goal", "min", "which way is better: min or max"},
};
constexpr RuleParam kProgressParams[] = {
    {"after", "30m", "how long no new step may come"},
};

constexpr RuleRow kRules[] = {
    {"nan", "fires when the metric is not a number",
     "True for a point whose value is NaN; with a window, for that many in a row.",
     "Lower the learning rate, clip gradients and look at the inputs of this step; with mixed "
     "precision, use a loss scaler.",
     kPointParams},
    {"inf", "fires when the metric is infinite",
     "True for a point whose value is plus or minus infinity; with a window, for that many in a "
     "row.",
     "Something overflowed: lower the learning rate, clip gradients, or keep this computation in "
     "32 bits.",
     kPointParams},
    {"above", "fires when the metric is above a limit",
     "True for a point whose value is greater than the limit; with a window, for that many in a "
     "row. NaN is not above anything.",
     "Compare with an earlier run at this step (`ath diff`), then lower the learning rate or look "
     "at the data of this step.",
     kLimitParams},
    {"below", "fires when the metric is below a limit",
     "True for a point whose value is less than the limit; with a window, for that many in a row. "
     "NaN is not below anything.",
     "If the limit was the aim, stop here and keep the checkpoint; else compare with an earlier "
     "run at this step (`ath diff`).",
     kLimitParams},
    {"plateau", "fires when the metric has stopped getting better",
     "True when none of the last `window` points was better than the best one before them by more "
     "than min_delta. NaN and infinities are never better. A new best makes it untrue.",
     "Stop here and keep the best checkpoint, or lower the learning rate: more steps like these "
     "are not likely to help.",
     kPlateauParams},
    {"divergence", "fires when the metric runs away from its best",
     "The median of the last `window` points is compared with the best such median before: true "
     "when it is worse by more than `value` times the size of that best, and by more than "
     "min_delta. A point that is NaN or infinite counts as the worst there is.",
     "Go back to the checkpoint before this step with a lower learning rate or a longer warm-up, "
     "and clip gradients.",
     kDivergenceParams},
    {"no_progress", "fires when no new step comes",
     "True when the metric was seen and no point with another step (or without one) came for "
     "`after`. Counted from its first point, and it does not look at CPU, so it also sees a job "
     "that spins without moving on. The next such point makes it untrue at once.",
     "Look at the last lines of every rank (`ath logs`), at data loading, and at collectives that "
     "wait for a rank which is gone.",
     kProgressParams},
};

constexpr std::chrono::milliseconds kDefaultAfter = std::chrono::minutes(30);

tl::unexpected<Error> Refuse(std::string what, std::string why, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}.Why(std::move(why)));
}

std::string Shown(std::string_view text) {
  constexpr size_t kMost = 80;
  return "'" + Printable(text.substr(0, kMost)) + (text.size() > kMost ? "...'" : "'");
}

Status CheckKind(const RuleSpec& spec) {
  if (FindRule(spec.rule) != nullptr) return Ok();
  std::vector<std::string> kinds;
  for (const RuleRow& row : kRules) kinds.emplace_back(row.kind);
  const auto near = Nearest(spec.rule, kinds);
  return Refuse(spec.rule.empty() ? "a rule has no kind" : "there is no such rule",
                spec.rule.empty() ? "'rule' is missing" : "rule is " + Shown(spec.rule),
                near ? "did you mean '" + *near + "'?" : "rule: one of " + Join(kinds, ", "));
}

// A key that the kind would ignore is a mistake that the user should know about.
Status CheckTaken(const RuleSpec& spec, const RuleRow& row) {
  const RuleSpec none;
  const std::pair<std::string_view, bool> given[] = {
      {"value", spec.value.has_value()},
      {"window", spec.window != none.window},
      {"min_delta", spec.min_delta != none.min_delta},
      {"goal", spec.goal != none.goal},
      {"after", spec.after != none.after},
  };
  for (const auto& [name, set] : given) {
    if (!set || row.Takes(name)) continue;
    std::vector<std::string> takes;
    for (const RuleParam& param : row.params) takes.emplace_back(param.name);
    return Refuse(fmt::format("the rule {} takes no {}", row.kind, name), "it would be ignored",
                  fmt::format("remove {}; {} takes {}", name, row.kind, Join(takes, ", ")));
  }
  return Ok();
}

Status CheckNumbers(const RuleSpec& spec, const RuleRow& row) {
  const bool limit = row.kind == "above" || row.kind == "below";
  if (limit && !spec.value) {
    return Refuse(fmt::format("the rule {} needs a limit", row.kind), "'value' is missing",
                  fmt::format("{{rule: {}, metric: {}, value: 10}}", row.kind,
                              spec.metric.empty() ? "loss" : Printable(spec.metric)));
  }
  if (spec.value && !std::isfinite(*spec.value)) {
    return Refuse(fmt::format("the value of the rule {} is no finite number", row.kind),
                  fmt::format("value is {}", *spec.value), "for these there are: nan, inf");
  }
  if (spec.value && !limit && *spec.value <= 0) {
    return Refuse(fmt::format("the value of the rule {} must be above 0", row.kind),
                  fmt::format("value is {}", *spec.value),
                  "value: 1 means as much worse as the best is large");
  }
  if (spec.window > kMaxRuleWindow) {
    return Refuse("the window of a rule is too long", fmt::format("window is {}", spec.window),
                  fmt::format("window: at most {} points", kMaxRuleWindow));
  }
  if (!std::isfinite(spec.min_delta) || spec.min_delta < 0) {
    return Refuse("min_delta must be 0 or more", fmt::format("min_delta is {}", spec.min_delta),
                  "which way is better is said by goal: min or max");
  }
  if (spec.goal != "min" && spec.goal != "max") {
    return Refuse("goal must be min or max", "goal is " + Shown(spec.goal),
                  "goal: min for a loss, max for an accuracy");
  }
  if (spec.after.count() < 0 || (spec.after.count() > 0 && spec.after < std::chrono::seconds(1))) {
    return Refuse("after must be at least a second",
                  fmt::format("after is {} ms", spec.after.count()), "after: 10m");
  }
  return Ok();
}

Status CheckAction(const RuleSpec& spec) {
  std::vector<std::string> actions(std::begin(kRuleActions), std::end(kRuleActions));
  if (std::find(actions.begin(), actions.end(), spec.action) == actions.end()) {
    const auto near = Nearest(spec.action, actions);
    return Refuse("a rule has no such action", "action is " + Shown(spec.action),
                  near ? "did you mean '" + *near + "'?" : "action: one of " + Join(actions, ", "));
  }
  if (spec.action != "webhook") {
    if (spec.url.empty()) return Ok();
    return Refuse("a rule has an address but does not use it", "action is " + spec.action,
                  "action: webhook");
  }
  // The text belongs to the user, and so may the address: never send it unencrypted.
  if (!StartsWith(spec.url, "https://") || spec.url.size() == std::string_view("https://").size()) {
    return Refuse("a webhook needs an address with https://",
                  spec.url.empty() ? "'url' is missing" : "url is " + Shown(spec.url),
                  "url: https://chat.example.org/hook");
  }
  return Ok();
}

}  // namespace

bool RuleRow::Takes(std::string_view param) const {
  return std::any_of(params.begin(), params.end(),
                     [&](const RuleParam& each) { return each.name == param; });
}

std::span<const RuleRow> RuleCatalogue() { return kRules; }

const RuleRow* FindRule(std::string_view kind) {
  for (const RuleRow& row : kRules) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

Status CheckRule(const RuleSpec& spec) {
  ATHANOR_CHECK_OK(CheckKind(spec));
  const RuleRow& row = *FindRule(spec.rule);
  if (Trim(spec.metric).empty()) {
    return Refuse(fmt::format("the rule {} names no metric", row.kind), "'metric' is missing",
                  "metric: loss, or a pattern such as val_*");
  }
  ATHANOR_CHECK_OK(CheckTaken(spec, row));
  ATHANOR_CHECK_OK(CheckNumbers(spec, row));
  return CheckAction(spec);
}

RuleSpec WithRuleDefaults(RuleSpec spec) {
  if (spec.name.empty()) spec.name = spec.rule;
  if (spec.rule == "divergence" && !spec.value) spec.value = spec.goal == "max" ? 0.5 : 1.0;
  const RuleRow* row = FindRule(spec.rule);
  if (spec.window == 0 && row != nullptr && row->Takes("window")) {
    spec.window = spec.rule == "plateau" ? 50 : spec.rule == "divergence" ? 10 : 1;
  }
  if (spec.rule == "no_progress" && spec.after.count() == 0) spec.after = kDefaultAfter;
  return spec;
}

bool MetricMatches(std::string_view pattern, std::string_view name) {
  // On a mismatch only the last * is tried again, one byte later: earlier ones can never do better,
  // so this takes at most pattern length times name length.
  size_t p = 0;
  size_t n = 0;
  std::optional<size_t> star;
  size_t star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star) {
      p = *star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> RulesWithoutMetric(const std::vector<RuleSpec>& rules,
                                            const std::vector<std::string>& logged) {
  std::vector<std::string> texts;
  for (const auto& given : rules) {
    const RuleSpec rule = WithRuleDefaults(given);
    const bool found = std::any_of(logged.begin(), logged.end(), [&](const std::string& name) {
      return MetricMatches(rule.metric, name);
    });
    if (found) continue;
    std::string text = "rule " + Printable(rule.name) + " on '" + Printable(rule.metric) + "': ";
    if (logged.empty()) {
      text += "no metric was logged";
    } else if (rule.metric.find('*') != std::string::npos) {
      text += "no metric that was logged has such a name";
    } else {
      text += "no metric of that name was logged";
    }
    if (const auto meant = Nearest(rule.metric, logged)) {
      text += "; did you mean " + Printable(*meant) + "?";
    } else if (!logged.empty()) {
      std::vector<std::string> some;
      for (const auto& name : logged) {
        if (some.size() == kMostNamed) break;
        some.push_back(Printable(name));
      }
      text += "; there is " + Join(some, ", ") + (logged.size() > some.size() ? ", ..." : "");
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace athanor
