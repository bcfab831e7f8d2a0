#include "tune/history.h"

#include <algorithm>
#include <cmath>

#include "base/text/format.h"

namespace athanor::tune {
namespace {

tl::unexpected<Error> BadTrial(ErrorCode code, std::string what, std::string hint) {
  return Fail(Error{code, std::move(what), std::move(hint)}.Id("ATH-T0002"));
}

}  // namespace

void History::Add(int64_t id, Assignment values) {
  keys_.insert(KeyOf(values));
  by_id_[id] = trials_.size();
  Trial trial;
  trial.id = id;
  trial.point = space_->Encode(values);
  trial.values = std::move(values);
  trials_.push_back(std::move(trial));
  next_id_ = std::max(next_id_, id + 1);
}

Status History::Asked(int64_t id, Assignment values) {
  if (id < 0 || id > (int64_t{1} << 53) || by_id_.count(id)) {
    return BadTrial(ErrorCode::kConflict, fmt::format("trial {} cannot be asked for again", id),
                    "take the next free id");
  }
  Add(id, std::move(values));
  ++asks_;
  return Ok();
}

Result<Trial*> History::Open(int64_t id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) {
    return BadTrial(ErrorCode::kNotFound, fmt::format("no trial has the id {}", id),
                    "tell the id that ask gave; null for a trial made elsewhere");
  }
  return &trials_[found->second];
}

Status History::Told(int64_t id, double value) {
  if (!std::isfinite(value)) return Failed(id);
  ATHANOR_TRY(auto* trial, Open(id));
  if (trial->state != Trial::State::kRunning) {
    if (trial->state == Trial::State::kDone && trial->value == value) return Ok();
    return BadTrial(ErrorCode::kConflict, fmt::format("trial {} was told already", id),
                    "tell a trial once; ask for a new one to measure again");
  }
  trial->state = Trial::State::kDone;
  trial->value = value;
  told_.push_back(by_id_[id]);
  return Ok();
}

Status History::Failed(int64_t id) {
  ATHANOR_TRY(auto* trial, Open(id));
  if (trial->state == Trial::State::kFailed) return Ok();
  if (trial->state == Trial::State::kDone) {
    return BadTrial(ErrorCode::kConflict, fmt::format("trial {} was told already", id),
                    "tell a trial once; ask for a new one to measure again");
  }
  trial->state = Trial::State::kFailed;
  told_.push_back(by_id_[id]);
  return Ok();
}

int64_t History::Imported(Assignment values, double value, bool failed) {
  const int64_t id = next_id_;
  Add(id, std::move(values));
  auto& trial = trials_.back();
  trial.state = failed || !std::isfinite(value) ? Trial::State::kFailed : Trial::State::kDone;
  trial.value = trial.state == Trial::State::kDone ? value : 0;
  told_.push_back(trials_.size() - 1);
  return id;
}

void History::Recode() {
  for (auto& trial : trials_) trial.point = space_->Encode(trial.values);
}

std::vector<size_t> History::Running() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < trials_.size(); ++i) {
    if (trials_[i].state == Trial::State::kRunning) out.push_back(i);
  }
  return out;
}

const Trial* History::Find(int64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &trials_[found->second];
}

const Trial* History::Best() const {
  const Trial* best = nullptr;
  for (const auto& trial : trials_) {
    if (trial.state == Trial::State::kDone && (!best || trial.value < best->value)) best = &trial;
  }
  return best;
}

}  // namespace athanor::tune
