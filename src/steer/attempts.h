// What the attempts of a record say about the next one: when it may start, on what,
// from where, and what the earlier ones lost. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/exec/clock.h"
#include "job/record.h"

namespace athanor {

// The machine's fault, not the script's.
bool IsInfrastructure(const Cause& cause);
// Whether retry.on names this end: a cause, exit:N, or a log:PATTERN that matched.
bool RetryNames(const RetrySpec& retry, const Cause& cause, const ExitInfo& exit);

// The newest checkpoint that any attempt stored; null: none.
const CheckpointInfo* LastCheckpoint(const JobRecord& record);
// Attempts lost in a row, counted back from the newest, that stored no checkpoint and were not on a
// machine that can be taken away.
uint32_t FruitlessLosses(const JobRecord& record);
// The part of the attempt's held time that the next one repeats.
int64_t LostMs(const Attempt& attempt);
// "saved in 3.1 s of 120 s", "not saved in 120 s".
std::string NoticeText(const Attempt& attempt);

// The next attempt may not start before this: after the user's pause, doubled each time; and
// attempts that keep failing at once are slowed down.
WallTime NotBefore(const JobRecord& record);
// The type after the last out_of_memory: the next of retry.escalate; empty: none is left.
std::string NextType(const JobRecord& record);
// What the next attempt requests; differs from the spec's after an escalation.
ResourceSpec NextResources(const JobRecord& record);

// When to interrupt the running attempt deliberately, after its script's start.
std::optional<std::chrono::milliseconds> PreemptAfter(const JobRecord& record);

}  // namespace athanor
