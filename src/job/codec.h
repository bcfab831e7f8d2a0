// JSON forms of the nouns, made from the field tables in job/fields.h. Reading ignores unknown
// members (data of a newer server) and is strict about types.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json.h"
#include "job/event.h"
#include "job/inventory.h"
#include "job/record.h"

namespace athanor {

Json ToJson(const JobSpec& spec);
Json ToJson(const JobRecord& record);
Json ToJson(const Attempt& attempt);
Json ToJson(const Cause& cause);
Json ToJson(const Placement& placement);
Json ToJson(const ExitInfo& exit);
Json ToJson(const Output& output);
Json ToJson(const CheckpointInfo& checkpoint);
Json ToJson(const IntervalAdvice& advice);
Json ToJson(const Firing& firing);
Json ToJson(const StoredEvent& event);
Json ToJson(const Inventory& inventory);

// Unknown members are skipped: an older version can read what a newer one stored.
Result<JobSpec> SpecFromJson(const Json& json);
// As above, but unknown members are refused: what a caller sends is never dropped silently.
Result<JobSpec> SpecFromCaller(const Json& json);
Result<JobRecord> RecordFromJson(const Json& json);  // with AddMissingHosts
Result<Cause> CauseFromJson(const Json& json);
Result<Placement> PlacementFromJson(const Json& json);
Result<ExitInfo> ExitFromJson(const Json& json);
Result<Output> OutputFromJson(const Json& json);
Result<CheckpointInfo> CheckpointFromJson(const Json& json);
Result<IntervalAdvice> AdviceFromJson(const Json& json);
Result<Firing> FiringFromJson(const Json& json);
Result<StoredEvent> EventFromJson(const Json& json);

// Stable bytes for comparison: what makes two submits "the same spec".
std::string SpecHash(const JobSpec& spec);
// What makes two runs the same experiment: source, command, parameters and data only.
std::string SameRunHash(const JobSpec& spec);

}  // namespace athanor
