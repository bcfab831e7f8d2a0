#include "watch/rules/rule_set.h"

#include <map>
#include <string_view>
#include <utility>

#include "base/text/text.h"
#include "job/rules.h"
#include "watch/rules/rule.h"

namespace athanor {
namespace {

// Whether a rule is true on one rank, with the patience that recovery needs.
struct Alarm {
  bool on = false;
  uint32_t well = 0;  // points in a row for which it is not true

  void See(bool holds) {
    if (holds) {
      on = true;
      well = 0;
    } else if (on && ++well >= kRecoverPoints) {
      on = false;
      well = 0;
    }
  }
};

struct Stream {
  std::unique_ptr<ScalarRule> rule;
  Alarm alarm;
};

// When a metric was last seen, over all ranks.
struct Pulse {
  std::optional<int64_t> step;
  Millis at{0};
  WallTime wall;
  bool told = false;
};

}  // namespace

struct RuleSet::Rule {
  RuleSpec spec;
  const RuleRow* row = nullptr;
  bool literal = false;  // no * in the metric
  std::map<std::string, std::map<Rank, Stream>, std::less<>> metrics;
  std::map<std::string, Pulse, std::less<>> pulses;
  size_t streams = 0;
  uint64_t ignored = 0;
  // Names come in long runs of the same few; most do not concern most rules.
  std::map<std::string, bool, std::less<>> matches;

  bool Wants(const std::string& name) {
    if (literal) return name == spec.metric;
    if (const auto known = matches.find(name); known != matches.end()) return known->second;
    const bool match = MetricMatches(spec.metric, name);
    if (matches.size() < kMaxStreams) matches.emplace(name, match);
    return match;
  }

  Firing Fire(const std::string& metric, std::optional<int64_t> step, WallTime wall) const {
    Firing firing;
    firing.rule = spec.name;
    firing.kind = spec.rule;
    firing.metric = metric;
    firing.step = step;
    firing.action = spec.action;
    firing.advice = row->advice;
    firing.at = wall;
    return firing;
  }

  void Judge(const RulePoint& point, std::vector<Firing>& out) {
    auto metric = metrics.find(point.name);
    const bool known = metric != metrics.end() && metric->second.contains(point.rank);
    if (!known && streams >= kMaxStreams) {
      ++ignored;
      return;
    }
    if (metric == metrics.end()) metric = metrics.try_emplace(point.name).first;
    Stream& stream = metric->second[point.rank];
    if (!known) {
      ++streams;
      stream.rule = MakeScalarRule(spec);
    }
    bool was_on = false;
    for (const auto& [rank, each] : metric->second) was_on = was_on || each.alarm.on;
    const Verdict verdict = stream.rule->Point(point.step, point.value);
    stream.alarm.See(verdict.holds);
    if (was_on || !verdict.holds) return;
    Firing firing = Fire(point.name, point.step, point.wall);
    firing.value = ShowValue(verdict.value);
    firing.threshold = verdict.threshold;
    out.push_back(std::move(firing));
  }

  void Live(const RulePoint& point, std::vector<Firing>& out) {
    auto found = pulses.find(point.name);
    if (found == pulses.end()) {
      if (pulses.size() >= kMaxStreams) {
        ++ignored;
        return;
      }
      pulses.emplace(point.name, Pulse{point.step, point.at, point.wall});
      return;
    }
    // First what was true just before: a caller that ticks late gets the same result.
    Starve(found->first, found->second, point.at, out);
    Pulse& pulse = found->second;
    if (point.step && point.step == pulse.step) return;
    pulse = Pulse{point.step ? point.step : pulse.step, point.at, point.wall};
  }

  void Starve(const std::string& metric, Pulse& pulse, Millis now, std::vector<Firing>& out) {
    if (pulse.told || now - pulse.at < spec.after) return;
    pulse.told = true;
    Firing firing = Fire(metric, pulse.step, WallTime{pulse.wall.ms + spec.after.count()});
    firing.value = "no new step";
    firing.threshold = "within " + HumanDuration(spec.after);
    out.push_back(std::move(firing));
  }
};

RuleSet::RuleSet() = default;
RuleSet::RuleSet(RuleSet&&) noexcept = default;
RuleSet& RuleSet::operator=(RuleSet&&) noexcept = default;
RuleSet::~RuleSet() = default;

Result<RuleSet> RuleSet::Make(const std::vector<RuleSpec>& specs) {
  RuleSet set;
  for (const RuleSpec& spec : specs) {
    ATHANOR_CHECK_OK(CheckRule(spec));
    auto rule = std::make_unique<Rule>();
    rule->spec = WithRuleDefaults(spec);
    rule->row = FindRule(spec.rule);
    rule->literal = spec.metric.find('*') == std::string::npos;
    set.rules_.push_back(std::move(rule));
  }
  return set;
}

void RuleSet::Feed(const RulePoint& point, std::vector<Firing>& out) {
  for (const auto& rule : rules_) {
    if (!rule->Wants(point.name)) continue;
    if (rule->spec.rule == "no_progress") {
      rule->Live(point, out);
    } else {
      rule->Judge(point, out);
    }
  }
}

void RuleSet::Tick(Millis now, std::vector<Firing>& out) {
  for (const auto& rule : rules_) {
    for (auto& [metric, pulse] : rule->pulses) rule->Starve(metric, pulse, now, out);
  }
}

std::vector<UnmatchedRule> RuleSet::unmatched() const {
  std::vector<UnmatchedRule> found;
  for (const auto& rule : rules_) {
    if (!rule->metrics.empty() || !rule->pulses.empty()) continue;
    found.push_back({rule->spec.name, rule->spec.metric});
  }
  return found;
}

uint64_t RuleSet::ignored() const {
  uint64_t sum = 0;
  for (const auto& rule : rules_) sum += rule->ignored;
  return sum;
}

Result<std::vector<Firing>> Replay(const std::vector<RuleSpec>& specs,
                                   std::span<const RulePoint> points, std::optional<WallTime> end) {
  ATHANOR_TRY(RuleSet rules, RuleSet::Make(specs));
  std::vector<Firing> firings;
  for (RulePoint point : points) {
    point.at = Millis(point.wall.ms);
    rules.Feed(point, firings);
  }
  if (end) rules.Tick(Millis(end->ms), firings);
  return firings;
}

}  // namespace athanor
