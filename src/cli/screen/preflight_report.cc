#include "cli/screen/preflight_report.h"

#include <algorithm>
#include <cmath>

#include "base/text/format.h"
#include "base/text/text.h"
#include "job/rules.h"

namespace athanor {
namespace {

// Data of a real run is larger than a sample, and so may be what is held of it.
constexpr double kComfortable = 0.8;
// The first steps warm up; with fewer there is no meaningful speed.
constexpr int64_t kFewestSteps = 3;

std::string StepText(const std::optional<int64_t>& step) {
  return step ? "step " + std::to_string(*step) : std::string("no step");
}

bool Sampled(const PreflightFacts& facts) {
  return std::any_of(facts.channels.begin(), facts.channels.end(),
                     [](const auto& channel) { return channel.second.fraction() < 1; });
}

PreflightCheck Runs(const PreflightFacts& facts) {
  if (!facts.failure) {
    std::string text = facts.completed ? "came to its end" : "runs";
    if (facts.steps) text += ", at " + StepText(facts.steps);
    return {"runs", Verdict::kOk, text, ""};
  }
  std::string hint = "ath why " + ShellQuote(facts.job);
  if (!facts.failure->hint.empty()) hint = facts.failure->hint + "\n" + hint;
  if (Sampled(facts)) hint += "\nif it misses data: --preflight-sample takes more of each channel";
  return {"runs", Verdict::kFail, facts.failure->text, hint};
}

PreflightCheck Metrics(const JobSpec& real, const PreflightFacts& facts) {
  std::vector<std::string> missing;
  for (const auto& metric : real.metrics) {
    if (std::find(facts.metrics.begin(), facts.metrics.end(), metric.name) == facts.metrics.end()) {
      missing.push_back(metric.name);
    }
  }
  if (!missing.empty()) {
    return {"metrics", Verdict::kFail, "no line matched the regex of " + Join(missing, ", "),
            "compare metrics in the job file with: ath logs " + ShellQuote(facts.job)};
  }
  if (facts.metrics.empty()) {
    return {"metrics", Verdict::kWarn, "none was seen",
            "athanor.log(loss=loss, step=step), or metrics: with a regex in the job file"};
  }
  return {"metrics", Verdict::kOk, Join(facts.metrics, ", "), ""};
}

// A rule on a metric that never comes never fires.
std::optional<PreflightCheck> Rules(const JobSpec& real, const PreflightFacts& facts) {
  if (real.rules.empty()) return std::nullopt;
  std::vector<std::string> blind;
  for (const auto& rule : real.rules) {
    const bool seen =
        std::any_of(facts.metrics.begin(), facts.metrics.end(),
                    [&](const auto& name) { return MetricMatches(rule.metric, name); });
    if (!seen) blind.push_back(WithRuleDefaults(rule).name + " (" + rule.metric + ")");
  }
  if (blind.empty()) return PreflightCheck{"rules", Verdict::kOk, "each sees its metric", ""};
  return PreflightCheck{
      "rules", Verdict::kWarn, "no such metric so far: " + Join(blind, ", "),
      "metrics seen: " + (facts.metrics.empty() ? "none" : Join(facts.metrics, ", "))};
}

PreflightCheck Checkpoint(const JobSpec& real, const PreflightFacts& facts) {
  const bool needed = real.resources.spot.use || real.retry.max > 0;
  if (!facts.saved) {
    return {"checkpoint", needed ? Verdict::kFail : Verdict::kWarn,
            std::string("none was saved") +
                (needed ? ", and this job may be interrupted: it would start anew each time" : ""),
            "if athanor.should_checkpoint(step): athanor.checkpoint(step, save)\n"
            "or write into $SM_CHECKPOINT_DIR; a longer look: --preflight-time 2m"};
  }
  std::string text = "saved " + HumanBytes(facts.saved->bytes) +
                     (facts.saved->step ? " at " + StepText(facts.saved->step) : "");
  if (facts.saved->save_ms > 0) {
    text += " in " + HumanDuration(Millis(facts.saved->save_ms));
  }
  if (facts.resume_failure) {
    return {"checkpoint", Verdict::kFail,
            text + "; going on from it failed: " + facts.resume_failure->text,
            "ath why " + ShellQuote(facts.job)};
  }
  if (facts.resumed_from.empty()) {
    return {"checkpoint", Verdict::kFail, text + "; the next attempt did not start from it",
            "ath checkpoints " + ShellQuote(facts.job)};
  }
  text += "; resumed from " + facts.resumed_from;
  if (facts.steps_after && facts.saved->step && *facts.steps_after > *facts.saved->step) {
    return {"checkpoint", Verdict::kOk, text + " and reached " + StepText(facts.steps_after), ""};
  }
  // Restored, verified, and the script ran; that it loaded it cannot be seen.
  return {"checkpoint", Verdict::kOk, text, ""};
}

PreflightCheck MemoryCheck(const PreflightFacts& facts) {
  if (facts.memory_peak == 0) return {"memory", Verdict::kWarn, "was not measured", "ath check"};
  std::string text = "peak " + HumanBytes(facts.memory_peak);
  if (facts.memory_limit == 0) return {"memory", Verdict::kOk, text + ", no limit", ""};
  text += " of " + HumanBytes(facts.memory_limit) + " (" + facts.limit_of + ")";
  const auto peak = static_cast<double>(facts.memory_peak);
  const auto limit = static_cast<double>(facts.memory_limit);
  if (peak >= limit) {
    return {"memory", Verdict::kFail, text,
            "ath types        for a larger one\nor a smaller batch"};
  }
  if (peak > kComfortable * limit) {
    return {"memory", Verdict::kWarn, text + ": little is left",
            "a larger type, or a smaller batch"};
  }
  return {"memory", Verdict::kOk, text, ""};
}

std::optional<PreflightCheck> Data(const PreflightFacts& facts) {
  if (facts.channels.empty()) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto& [name, sample] : facts.channels) {
    parts.push_back(fmt::format("{}: {} of {} files, {}", name, sample.files, sample.all_files,
                                HumanBytes(sample.bytes)));
  }
  return PreflightCheck{"data", Verdict::kOk, Join(parts, "; "), ""};
}

}  // namespace

std::string_view NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "";
}

std::vector<PreflightCheck> JudgePreflight(const JobSpec& real, const PreflightFacts& facts) {
  std::vector<PreflightCheck> checks{Runs(facts)};
  if (auto data = Data(facts)) checks.push_back(std::move(*data));
  // What a failed run did not show is not worth reporting.
  if (facts.failure) return checks;
  checks.push_back(Metrics(real, facts));
  if (auto rules = Rules(real, facts)) checks.push_back(std::move(*rules));
  checks.push_back(Checkpoint(real, facts));
  checks.push_back(MemoryCheck(facts));
  return checks;
}

RunEstimate EstimateRun(const PreflightFacts& facts) {
  RunEstimate estimate;
  if (facts.total <= 0) {
    estimate.why_not =
        "the script does not say how many steps it will make: "
        "athanor.progress(step, total)";
    return estimate;
  }
  // From the second value on: the first includes loading and compiling.
  int64_t steps = 0;
  int64_t span = 0;
  if (facts.progress.size() >= 2) {
    const auto& [from_ms, from] = facts.progress.front();
    const auto& [to_ms, to] = facts.progress.back();
    steps = to - from;
    span = to_ms - from_ms;
  }
  if (steps < kFewestSteps || span <= 0) {
    estimate.why_not = fmt::format(
        "too few of its {} steps were made to tell their speed: "
        "--preflight-time 2m",
        facts.total);
    return estimate;
  }
  const double step_ms = static_cast<double>(span) / static_cast<double>(steps);
  estimate.steps_per_second = 1'000.0 / step_ms;
  // Up to the first reading: once. A reading of the first step has made it already.
  const auto& [first_ms, first] = facts.progress.front();
  const double before =
      std::max(0.0, static_cast<double>(first_ms) - step_ms * static_cast<double>(first));
  double share = 1;
  for (const auto& [name, sample] : facts.channels) share = std::min(share, sample.fraction());
  const double once = static_cast<double>(facts.setup_ms) + before;
  const double low = once + step_ms * static_cast<double>(facts.total);
  const double high = once + step_ms * static_cast<double>(facts.total) / std::max(share, 1e-6);
  const auto cost = [&facts](double ms) {
    return static_cast<int64_t>(
        std::llround(ms / 3'600'000.0 * static_cast<double>(facts.price.micros_per_hour) *
                     static_cast<double>(facts.nodes)));
  };
  estimate.low_ms = static_cast<int64_t>(low);
  estimate.high_ms = static_cast<int64_t>(high);
  estimate.low_micros = cost(low);
  estimate.high_micros = cost(high);
  return estimate;
}

}  // namespace athanor
