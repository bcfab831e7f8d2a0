#include "steer/live_news.h"

#include <charconv>

namespace athanor {

LiveNews::LiveNews(std::string life, size_t most) : life_(std::move(life)), most_(most) {}

void LiveNews::Note(JobId id, News news) {
  switch (news) {
    case News::kState:
      states_.insert(id);
      return;
    case News::kUsage:
      numbers_.jobs.insert(id);
      return;
    case News::kPoints:
      numbers_.runs.insert(id);
      return;
    case News::kLog:
      numbers_.logs.insert(id);
      return;
  }
}

void LiveNews::Remember(std::map<JobId, uint64_t>& told, const std::set<JobId>& ids) const {
  for (const JobId id : ids) told[id] = turn_;
}

LiveNews::Batch LiveNews::Take(bool numbers) {
  Batch batch;
  if (numbers) std::swap(batch, numbers_);
  batch.jobs.merge(states_);
  states_.clear();
  if (batch.empty()) return batch;
  ++turn_;
  Remember(jobs_told_, batch.jobs);
  Remember(runs_told_, batch.runs);
  Remember(logs_told_, batch.logs);
  if (jobs_told_.size() + runs_told_.size() + logs_told_.size() > most_) {
    jobs_told_.clear();
    runs_told_.clear();
    logs_told_.clear();
    known_from_ = turn_ + 1;
  }
  return batch;
}

std::string LiveNews::Position() const { return life_ + "." + std::to_string(turn_); }

std::optional<LiveNews::Batch> LiveNews::Since(std::string_view position) const {
  const size_t dot = position.rfind('.');
  if (dot == std::string_view::npos || position.substr(0, dot) != life_) return std::nullopt;
  const auto digits = position.substr(dot + 1);
  uint64_t turn = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), turn);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (turn > turn_ || turn < known_from_) return std::nullopt;
  Batch batch;
  const auto pick = [turn](const std::map<JobId, uint64_t>& told, std::set<JobId>& into) {
    for (const auto& [id, at] : told) {
      // A turn is sent in several frames, of which the page may have received the first.
      if (at >= turn) into.insert(id);
    }
  };
  pick(jobs_told_, batch.jobs);
  pick(runs_told_, batch.runs);
  pick(logs_told_, batch.logs);
  return batch;
}

}  // namespace athanor
