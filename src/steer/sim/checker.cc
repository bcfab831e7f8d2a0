#include "steer/sim/checker.h"

#include <algorithm>

namespace athanor::sim {

void Checker::Durable(const JobRecord& record, const std::vector<StoredEvent>& events) {
  if (events.empty()) return;  // also said of what memory holds, when a stop is to be passed on
  auto& told = told_[record.id];
  told.name = record.spec.name;
  for (const auto& event : events) {
    world_.Note("event " + told.name + " " + std::to_string(event.seq) + " " + event.name + " " +
                std::string(NameOf(event.state)) + " " + event.cause.kind);
    if (event.seq != told.seq + 1) {
      Break(told.name,
            "event " + std::to_string(event.seq) + " follows " + std::to_string(told.seq));
    }
    if (IsTerminal(told.state)) Break(told.name, event.name + " happened after its end");
    told.seq = event.seq;
    told.state = event.state;
  }
  if (record.event_seq != told.seq || record.state != told.state) {
    Break(told.name, "the record and its last event differ");
  }
  const auto stored = server_->store().Events(record.id, told.seq - 1, 1);
  if (!stored || stored->empty()) Break(told.name, "a change was told before it was durable");
  CheckHosts(record);
  if (events.back().name != "host_lost") return;
  const auto& lost = record.attempts[events.back().attempt - 1];
  for (uint32_t i = 0; i < lost.hosts.size(); ++i) {
    const auto at = taken_.find({lost.id, i});
    if (at == taken_.end() || lost.hosts[i].over != events.back().at) continue;
    if (lost.hosts[i].held_ms < at->second) {
      Break(told.name, "held time that was reported is not on the bill");
    }
  }
}

// Silence does not mean death: nothing is given up while it runs somewhere.
void Checker::CheckHosts(const JobRecord& record) {
  for (size_t i = 0; i < record.attempts.size(); ++i) {
    const auto& attempt = record.attempts[i];
    const std::string which = "attempt " + std::to_string(attempt.number);
    if (attempt.hosts.size() != record.spec.resources.nodes) {
      Break(record.spec.name, which + " was placed in part");
    }
    CheckFall(record, attempt);
    if (attempt.ended.ms == 0 && i + 1 != record.attempts.size()) {
      Break(record.spec.name, "an older attempt has no end");
    }
    for (uint32_t h = 0; h < attempt.hosts.size(); ++h) {
      if (attempt.ended.ms == 0 && attempt.hosts[h].over.ms == 0) continue;
      const auto* host = cluster_.Find(attempt.id, h);
      if (host && host->occupies()) {
        Break(record.spec.name, which + " was given up (" + attempt.hosts[h].cause.kind +
                                    ") while it lives on host " + std::to_string(h));
      }
    }
  }
}

void Checker::CheckFall(const JobRecord& record, const Attempt& attempt) {
  const auto was = fell_.find(attempt.id);
  if (was != fell_.end() && attempt.fell != was->second) {
    Break(record.spec.name, "its first fall changed");
  }
  if (!attempt.fell) return;
  fell_.emplace(attempt.id, *attempt.fell);
  // An interruption that was asked for later hides nothing.
  if (attempt.ended.ms != 0 && !record.stop && attempt.cause.kind != attempt.fell->cause.kind) {
    Break(record.spec.name,
          "it ended as " + attempt.cause.kind + ", but fell first by " + attempt.fell->cause.kind);
  }
}

void Checker::UsageTaken(AttemptId attempt, uint32_t host, int64_t held_ms) {
  auto& taken = taken_[{attempt, host}];
  taken = std::max(taken, held_ms);
}

void Checker::CameUp() {
  taken_.clear();
  for (auto& [id, told] : told_) {
    const auto stored = server_->store().Events(id, told.seq - 1, 10'000);
    if (!stored || stored->empty()) {
      Break(told.name, "events that were told are gone");
      continue;
    }
    if (IsTerminal(told.state) && stored->size() > 1) Break(told.name, "it changed after its end");
    told.seq = stored->back().seq;
    told.state = stored->back().state;
  }
  // Durable in the last life, which ended before it could report it.
  if (const auto live = server_->store().Live()) {
    for (const auto& record : *live) {
      told_[record.id] = {record.event_seq, record.state, record.spec.name};
    }
  }
  for (const auto& [key, id] : acknowledged_) {
    if (!server_->store().Find(id)) world_.Break("an acknowledged job is gone: " + key);
  }
}

void Checker::Acknowledged(const std::string& key, JobId id) {
  const auto [at, fresh] = acknowledged_.emplace(key, id);
  if (at->second != id) world_.Break("key " + key + " was given two jobs");
  if (server_->up() && fresh && !server_->store().Find(id)) {
    world_.Break("job of " + key + " was acknowledged before it was durable");
  }
}

void Checker::Began(const HostAttempt& attempt) {
  const auto& name = attempt.plan.spec.name;
  if (attempt.preparing && server_->up()) {
    const auto stored = server_->store().Find(attempt.plan.job);
    const auto* known = stored ? stored->current() : nullptr;
    if (!known || known->id != attempt.plan.attempt) {
      Break(name, "an agent started before its attempt was durable");
    }
  }
  for (const auto& other : cluster_.attempts()) {
    if (other->plan.job != attempt.plan.job || other->plan.attempt == attempt.plan.attempt)
      continue;
    if (other->occupies() && attempt.occupies()) {
      Break(name, "attempts " + std::to_string(other->plan.number) + " and " +
                      std::to_string(attempt.plan.number) + " live at once");
    }
  }
  CheckRoom();
}

void Checker::CheckRoom() {
  uint64_t cpus = 0;
  uint64_t memory = 0;
  std::set<uint32_t> gpus;
  for (const auto& attempt : cluster_.attempts()) {
    if (!attempt->occupies()) continue;
    const auto& placement = attempt->plan.placement;
    cpus += placement.cpu_millis;
    memory += placement.memory_bytes;
    for (const auto gpu : placement.gpus) {
      if (gpu >= inventory_.gpus || !gpus.insert(gpu).second) {
        Break(attempt->plan.spec.name, "GPU " + std::to_string(gpu) + " has two holders");
      }
    }
  }
  if (cpus > inventory_.cpu_millis || memory > inventory_.memory_bytes) {
    world_.Break("the machines run more than they have");
  }
}

void Checker::EachTurn() {
  if (!server_->up()) return;
  uint64_t cpus = 0;
  for (const auto* record : server_->engine().AllLive()) {
    if (record->state == JobState::kQueued &&
        (record->cause.kind.empty() || record->cause.text.empty())) {
      Break(record->spec.name, "it waits without a reason");
    }
    if (HoldsRoom(record->state)) cpus += record->current()->placement.cpu_millis;
  }
  if (cpus > inventory_.cpu_millis) world_.Break("more is placed than there is");
}

bool Checker::AllOver() {
  return server_->up() && server_->engine().AllLive().empty() &&
         std::ranges::all_of(told_, [](const auto& at) { return IsTerminal(at.second.state); });
}

void Checker::AtTheEnd() {
  for (const auto& [id, told] : told_) {
    const auto record = server_->store().Find(id);
    if (!record) {
      Break(told.name, "it is gone");
      continue;
    }
    if (!IsTerminal(record->state)) Break(told.name, "it never ended");
    if (record->cause.kind.empty()) Break(told.name, "it ended without a cause");
    CheckHistory(*record);
  }
  std::map<std::string, JobId> keys;
  for (const auto& [id, told] : told_) {
    const auto record = server_->store().Find(id);
    if (!record) continue;
    if (!keys.emplace(record->key, id).second) world_.Break("key " + record->key + " has two jobs");
    const auto at = acknowledged_.find(record->key);
    if (at != acknowledged_.end() && at->second != id) {
      world_.Break("the job of key " + record->key + " is not the one that was acknowledged");
    }
  }
  if (const auto count = server_->store().Count(); !count || count->jobs != told_.size()) {
    world_.Break("the store has jobs that nobody was told of");
  }
  if (const auto outbox = server_->store().Outbox(); !outbox || !outbox->empty()) {
    world_.Break("effects were never performed");
  }
  for (const auto& attempt : cluster_.attempts()) {
    const auto& name = attempt->plan.spec.name;
    if (attempt->occupies()) Break(name, "it still runs after its end");
    if (cluster_.backend().MachineOf(attempt->plan.attempt, attempt->plan.host)) {
      Break(name, "it was never released");
    }
  }
}

void Checker::CheckHistory(const JobRecord& record) {
  const auto events = server_->store().Events(record.id, 0, 100'000);
  if (!events || events->size() != record.event_seq) {
    return Break(record.spec.name, "its history has not as many events as it says");
  }
  for (size_t i = 0; i < events->size(); ++i) {
    const auto& event = (*events)[i];
    if (event.seq != i + 1) Break(record.spec.name, "its history has a hole");
    if (i + 1 < events->size() && IsTerminal(event.state)) {
      Break(record.spec.name, "its history goes on after its end");
    }
  }
  CheckCost(record, *events);
}

// What is billed was held, and what the attempt reported last is billed. A host that could not send
// a last report is billed as far as is known (see Durable).
void Checker::CheckCost(const JobRecord& record, const std::vector<StoredEvent>& events) {
  for (const auto& attempt : record.attempts) {
    const auto of = record.spec.name + "/" + std::to_string(attempt.number);
    const bool said = std::ranges::any_of(events, [&](const StoredEvent& event) {
      return event.attempt == attempt.number &&
             (event.name == "ended" || event.name == "prepare_failed");
    });
    int64_t longest = 0;
    for (uint32_t i = 0; i < attempt.hosts.size(); ++i) {
      const auto& host = attempt.hosts[i];
      longest = std::max(longest, host.held_ms);
      const auto* known = cluster_.Find(attempt.id, i);
      const bool alone = attempt.hosts.size() == 1;
      CheckCostOf(of, host, known, (alone && said) || (known && known->final_word_taken));
    }
    if (attempt.held_ms != longest) Break(of, "it held longer, or less, than any of its hosts");
  }
}

void Checker::CheckCostOf(const std::string& of, const Host& host, const HostAttempt* known,
                          bool said) {
  if (!known) {
    if (host.held_ms != 0) Break(of, "billed without having been launched");
    return;
  }
  const auto held = (known->left.value_or(world_.now()) - known->first_agent).count();
  if (host.held_ms > held) {
    Break(of, "billed for " + std::to_string(host.held_ms) + " ms of " + std::to_string(held));
  }
  if (said && host.held_ms < known->final_word_held.value_or(0)) {
    Break(of, "billed for " + std::to_string(host.held_ms) + " ms, but its last word was at " +
                  std::to_string(*known->final_word_held));
  }
}

}  // namespace athanor::sim
