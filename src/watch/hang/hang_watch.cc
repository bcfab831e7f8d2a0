#include "watch/hang/hang_watch.h"

#include <algorithm>
#include <vector>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kReportsKept = 101;
constexpr int64_t kCpuSamples = 600;  // over the window; finer ones are not kept

double Median(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

Millis FromMs(double ms) {
  // A limit beyond a year is never reached.
  constexpr double kMost = 365.0 * 86'400'000;
  return Millis(static_cast<int64_t>(std::min(ms, kMost)));
}

std::string ShowStep(Millis step) {
  if (step >= std::chrono::minutes(1)) return HumanDuration(step);
  if (step >= Seconds(1)) return fmt::format("{:.1f} s", static_cast<double>(step.count()) / 1'000);
  return fmt::format("{} ms", step.count());
}

}  // namespace

std::string Hang::Text() const {
  return fmt::format("no output, no metric and {:.1f} % CPU for {} (allowed: {}, {})", cpu_percent,
                     HumanDuration(quiet), HumanDuration(limit), limit_source);
}

HangWatch::HangWatch(const LimitSpec& limits)
    : after_(limits.hang_after),
      steps_(limits.hang_steps == 0 ? kDefaultSteps : limits.hang_steps),
      off_(limits.hang_action == "off") {}

std::optional<Millis> HangWatch::limit() const {
  if (off_) return std::nullopt;
  if (after_.count() > 0) return after_;
  if (steps_seen_ < kMinSteps) return std::nullopt;
  return std::max(
      {kLeast, FromMs(steps_ * Median(step_ms_)), FromMs(kReports * Median(report_ms_))});
}

std::string HangWatch::LimitSource() const {
  if (after_.count() > 0) return "limits.hang.after";
  const Millis by_steps = FromMs(steps_ * Median(step_ms_));
  const Millis by_reports = FromMs(kReports * Median(report_ms_));
  if (by_steps >= std::max(kLeast, by_reports)) {
    return fmt::format("{} steps of {}", steps_, ShowStep(FromMs(Median(step_ms_))));
  }
  if (by_reports >= kLeast) {
    return fmt::format("{} times the usual {} between two metrics", kReports,
                       ShowStep(FromMs(Median(report_ms_))));
  }
  return "the least for jobs without limits.hang.after";
}

void HangWatch::SeeStep(std::optional<int64_t> step) {
  if (!step || step == step_) return;
  // A step that went back (a resume, the next epoch) only shows where it continues.
  if (step_ && *step > *step_ && watched_ > step_at_) {
    const auto took = static_cast<double>((watched_ - step_at_).count());
    // As unsigned: from the least to the greatest int64 does not overflow.
    const uint64_t steps = static_cast<uint64_t>(*step) - static_cast<uint64_t>(*step_);
    step_ms_.push_back(took / static_cast<double>(steps));
    report_ms_.push_back(took);
    if (step_ms_.size() > kReportsKept) {
      step_ms_.pop_front();
      report_ms_.pop_front();
    }
    steps_seen_ += std::min<uint64_t>(steps, kMinSteps);
  }
  step_ = step;
  step_at_ = watched_;
}

void HangWatch::KeepCpu(Millis limit) {
  const Millis apart(limit.count() / kCpuSamples);
  // The newest is always kept, so it may be moved on while it is near the one before.
  if (cpu_.size() >= 2 && watched_ - cpu_[cpu_.size() - 2].at < apart) cpu_.pop_back();
  cpu_.push_back({watched_, cpu_used_});
  while (cpu_.size() >= 2 && watched_ - cpu_[1].at >= limit) cpu_.pop_front();
}

double HangWatch::CpuPercent() const {
  const Millis span = watched_ - cpu_.front().at;
  return 100.0 * static_cast<double>(cpu_used_ - cpu_.front().used) /
         (static_cast<double>(span.count()) * 1e6);
}

std::optional<Hang> HangWatch::Sample(const HangSample& sample) {
  if (off_) return std::nullopt;
  if (!started_) {
    started_ = true;
    last_ = sample;
    step_ = sample.step;
    cpu_.push_back({watched_, 0});
    return std::nullopt;
  }
  watched_ += std::clamp(sample.now - last_.now, Millis(0), kMaxGap);
  if (sample.cpu_ns > last_.cpu_ns) cpu_used_ += sample.cpu_ns - last_.cpu_ns;
  const bool sign = sample.log_bytes != last_.log_bytes || sample.points != last_.points;
  if (sign) last_sign_ = watched_;
  last_ = sample;
  SeeStep(sample.step);

  const auto allowed = limit();
  // Until the needed length of the window is known, that of the shortest limit is kept.
  KeepCpu(allowed.value_or(kLeast));
  if (sign) told_ = false;
  if (!allowed) return std::nullopt;
  if (watched_ - cpu_.front().at < *allowed) return std::nullopt;
  const double cpu = CpuPercent();
  if (cpu >= kBusyPercent) {
    told_ = false;
    return std::nullopt;
  }
  const Millis quiet = watched_ - last_sign_;
  if (quiet < *allowed || told_) return std::nullopt;
  told_ = true;
  Hang hang;
  hang.quiet = quiet;
  hang.limit = *allowed;
  if (after_.count() == 0) hang.median_step = FromMs(Median(step_ms_));
  hang.limit_source = LimitSource();
  hang.cpu_percent = cpu;
  return hang;
}

}  // namespace athanor
