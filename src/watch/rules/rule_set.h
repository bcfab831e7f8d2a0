// The rules of a job over its metrics, streaming: points in as they come, firings
// out. The agent feeds it live; Replay runs the same code over a stored run.
//
// When a rule fires: when it becomes true for a metric (on any rank) and was not true before. Then
// it is silent until it has recovered: on every rank on which it was true, kRecoverPoints points in
// a row for which it is not true (no_progress: one new step). A step that goes back does not make
// it recover: the same problem at the same step again is the same problem.
//
// Pure; time is an argument. Not thread-safe. Memory is bounded: kMaxStreams (metric, rank) streams
// per rule, each with the rule's window and some hundred points.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "job/ids.h"
#include "job/record.h"
#include "job/spec.h"

namespace athanor {

struct RulePoint {
  std::string name;
  Rank rank;
  std::optional<int64_t> step;
  double value = 0;
  Millis at{0};   // monotonic: what no_progress counts by
  WallTime wall;  // for people
};

// A rule whose metric has no points so far: it cannot fire.
struct UnmatchedRule {
  std::string rule;
  std::string metric;
  bool operator==(const UnmatchedRule&) const = default;
};

class RuleSet {
 public:
  static constexpr size_t kMaxStreams = 512;

  // kInvalid as CheckRule says it, for the first spec that is wrong.
  static Result<RuleSet> Make(const std::vector<RuleSpec>& specs);
  RuleSet(RuleSet&&) noexcept;
  RuleSet& operator=(RuleSet&&) noexcept;
  ~RuleSet();

  // The firings of this point, in the order of the specs, are added to `out`. Their `threshold`
  // says what would have been fine ("at most 10"), their `action` is what the spec asks for.
  void Feed(const RulePoint& point, std::vector<Firing>& out);
  // What became true by time alone. Call it about every second; `at` of the firing is when it
  // became true, not when this was called.
  void Tick(Millis now, std::vector<Firing>& out);

  std::vector<UnmatchedRule> unmatched() const;
  // Points that were ignored because a rule had too many streams.
  uint64_t ignored() const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule;
  RuleSet();

  std::vector<std::unique_ptr<Rule>> rules_;
};

// Every firing of a stored run. `points` in the order in which they came; their wall times are used
// instead of monotonic ones. `end`: when the run ended, if it has.
Result<std::vector<Firing>> Replay(const std::vector<RuleSpec>& specs,
                                   std::span<const RulePoint> points,
                                   std::optional<WallTime> end = std::nullopt);

}  // namespace athanor
