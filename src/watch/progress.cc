#include "watch/progress.h"

#include <algorithm>
#include <cmath>

#include "watch/scalars/guess.h"

namespace athanor {
namespace {

constexpr size_t kLookedAt = 16u << 10;
constexpr size_t kMaxSamples = 64;

}  // namespace

void ProgressTracker::Mark(double done, double total, std::string_view unit, Millis now) {
  if (!std::isfinite(done) || !std::isfinite(total) || done < 0 || total < 0) return;
  if (!marked_) samples_.clear();
  marked_ = true;
  Add(done, total, unit, now);
}

void ProgressTracker::Feed(std::string_view bytes, Millis now) {
  if (marked_) return;
  if (bytes.size() > kLookedAt) {
    // The first line of what is left is most likely half a line, and harmless.
    bytes.remove_prefix(bytes.size() - kLookedAt);
    splitter_ = LineSplitter();
  }
  splitter_.Feed(bytes, [this, now](std::string_view line, uint64_t) { Line(line, now); });
}

void ProgressTracker::Line(std::string_view line, Millis now) {
  const Counter* inner = nullptr;
  bool epoch_here = false;
  const std::vector<Counter> counters = CountersIn(line);
  for (const Counter& counter : counters) {
    if (counter.word == "epoch") {
      epoch_here = true;
      epoch_zero_ = epoch_zero_ || counter.done == 0;
      epoch_ = counter.done;
      epochs_ = counter.total.value_or(0);
    } else if (counter.total && inner == nullptr) {
      inner = &counter;
    }
  }
  if (inner == nullptr && !epoch_here) return;
  const double part =
      inner == nullptr ? 0 : static_cast<double>(inner->done) / static_cast<double>(*inner->total);
  if (epochs_ == 0) {
    // No total of epochs: within one epoch, the bar is the only information.
    if (inner != nullptr && epoch_ < 0) {
      Add(static_cast<double>(inner->done), static_cast<double>(*inner->total), inner->word, now);
    } else {
      Add(static_cast<double>(epoch_ - (epoch_zero_ ? 0 : 1)) + part, 0, "epoch", now);
    }
    return;
  }
  // An epoch's line without steps is printed at its end if it has results, otherwise at its start.
  const bool at_end = inner == nullptr && !MetricsIn(line).empty();
  const double before = static_cast<double>(epoch_zero_ ? epoch_ : epoch_ - 1);
  const double done = before + (at_end ? 1 : part);
  Add(std::clamp(done, 0.0, static_cast<double>(epochs_)), static_cast<double>(epochs_), "epoch",
      now);
}

void ProgressTracker::Add(double done, double total, std::string_view unit, Millis now) {
  // Going back, or another total, means that something else is counted: old samples do not apply.
  if (last_ && (last_->total != total || done < last_->done || last_->unit != unit))
    samples_.clear();
  if (samples_.empty() || done > samples_.back().done) samples_.push_back({now, done});
  if (samples_.size() > kMaxSamples) samples_.pop_front();
  Progress progress;
  progress.unit = unit;
  progress.done = done;
  progress.total = total;
  progress.fraction = total > 0 ? std::min(done / total, 1.0) : 0;
  progress.guessed = !marked_;
  last_ = std::move(progress);
}

std::optional<Progress> ProgressTracker::At(Millis now) const {
  if (!last_) return std::nullopt;
  Progress progress = *last_;
  if (progress.total <= 0 || samples_.size() < 2) return progress;
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const double elapsed = static_cast<double>((last.at - first.at).count());
  if (elapsed <= 0) return progress;
  const double rate = (last.done - first.done) / elapsed;
  const double left = std::max(progress.total - last.done, 0.0) / rate;
  const double since = static_cast<double>((now - last.at).count());
  // A century is not an estimate.
  constexpr double kMost = 3.2e12;
  const double eta = std::clamp(left - since, 0.0, kMost);
  if (left < kMost) progress.eta = Millis(std::llround(eta));
  return progress;
}

}  // namespace athanor
