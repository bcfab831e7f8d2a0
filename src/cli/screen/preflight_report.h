// Evaluates what a preflight saw: which checks pass, and what the real run will take. Pure; the
// preflight itself is verb_preflight.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/screen/sample.h"
#include "job/record.h"

namespace athanor {

struct PreflightFacts {
  // How the short run went. `failure` is empty unless it failed before it was interrupted.
  std::optional<Cause> failure;
  bool completed = false;            // it ended within the budget
  std::optional<int64_t> steps;      // the newest step seen
  std::vector<std::string> metrics;  // names with at least one point

  std::optional<CheckpointInfo> saved;  // the newest kept
  bool interrupted = false;             // a second attempt was made
  std::string resumed_from;             // what that attempt started from; empty: nothing
  std::optional<Cause> resume_failure;  // ... and how it failed, if it did
  std::optional<int64_t> steps_after;   // the newest step it reached

  uint64_t memory_peak = 0;   // bytes; 0: not known
  uint64_t memory_limit = 0;  // of the real machine; 0: none
  std::string limit_of;       // "ml.m5.large", "resources.memory", "this machine"

  std::vector<std::pair<std::string, Sample>> channels;

  // Of the first attempt: (milliseconds since the script started, steps done).
  std::vector<std::pair<int64_t, int64_t>> progress;
  int64_t total = 0;     // steps, as the script says; 0: unknown
  int64_t setup_ms = 0;  // before the script started
  PriceTag price;        // of a node of the real run
  uint32_t nodes = 1;    // of the real run; the short one is on one
  std::string job;       // name of the short run, for hints
};

enum class Verdict { kOk, kWarn, kFail };
std::string_view NameOf(Verdict verdict);  // "ok", "warn", "fail"

struct PreflightCheck {
  std::string name;  // "runs", "metrics", "rules", "checkpoint", "memory", "data"
  Verdict verdict = Verdict::kOk;
  std::string text;
  std::string hint;  // what to do; empty if all is well
};

// In the order a person would fix them.
std::vector<PreflightCheck> JudgePreflight(const JobSpec& real, const PreflightFacts& facts);

// At the speed of this machine. If the data was a sample and the number of steps depends on it, the
// real run may have more: `high` scales them up.
struct RunEstimate {
  double steps_per_second = 0;
  int64_t low_ms = 0;
  int64_t high_ms = 0;
  int64_t low_micros = 0;
  int64_t high_micros = 0;
  std::string why_not;  // set: nothing could be estimated
};
RunEstimate EstimateRun(const PreflightFacts& facts);

}  // namespace athanor
