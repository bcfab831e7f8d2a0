#include "steer/loss_rates.h"

#include <algorithm>
#include <chrono>

#include "base/exec/clock.h"
#include "base/text/text.h"
#include "record/jobs/loss_store.h"

namespace athanor {
namespace {

constexpr char kOwnMachine[] = "local";
// Before anything was measured. Machines that may be taken away last hours, others weeks.
constexpr Millis kAssumedSpotLife = std::chrono::hours(6);
constexpr Millis kAssumedLife = std::chrono::hours(24 * 30);

}  // namespace

std::string LossRates::TypeOf(const JobRecord& record, const Attempt& attempt) {
  if (!attempt.type.empty()) return attempt.type;
  return record.spec.resources.type.empty() ? kOwnMachine : record.spec.resources.type;
}

LossRates::Rate LossRates::Of(const JobRecord& record, const Attempt& attempt) const {
  const auto known = store_.Of(TypeOf(record, attempt), attempt.spot);
  if (known && known->losses > 0) {
    // An attempt is lost with the first of its machines.
    const auto machines = static_cast<int64_t>(std::max<size_t>(attempt.hosts.size(), 1));
    return {known->held_ms / known->losses / machines,
            "measured: " + std::to_string(known->losses) + " in " +
                HumanDuration(Millis(known->held_ms))};
  }
  return {(attempt.spot ? kAssumedSpotLife : kAssumedLife).count(), "assumed, none was lost yet"};
}

void LossRates::Count(const JobRecord& record, const std::vector<StoredEvent>& events) {
  for (const auto& event : events) {
    const bool requeued = event.name == "requeued";
    if ((!requeued && !IsTerminal(event.state)) || event.attempt == 0 ||
        event.attempt > record.attempts.size()) {
      continue;
    }
    const auto& attempt = record.attempts[event.attempt - 1];
    const bool lost = attempt.cause.Is(CauseKind::kPreempted) ||
                      attempt.cause.Is(CauseKind::kAgentLost) ||
                      attempt.cause.Is(CauseKind::kHostMissing);
    int64_t held = 0;  // by all of its machines
    for (const auto& host : attempt.hosts) held += host.held_ms;
    // A statistic: one more or less after a crash does not matter.
    (void)writer_.Submit([&store = store_, type = TypeOf(record, attempt), spot = attempt.spot,
                          held = std::max(held, attempt.held_ms),
                          lost] { (void)store.Add(type, spot, held, lost).ok(); });
  }
}

}  // namespace athanor
