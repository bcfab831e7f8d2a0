// What a person sees of the hosts and ranks of an attempt: how each host is, and what failed first.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "job/record.h"

namespace athanor {

//   Starting   its agent has not come up yet
//   Preparing  the agent is up, and the ranks have not started
//   Running    its ranks run
//   Uploading  its ranks are over, and what they left is being stored
//   Ended      nothing more is expected of it
//   Lost       it was lost while its ranks ran: how they ended is not known
//   Unknown    its agent has not been heard of for a while (job/shown.h)
std::string_view HostState(const Attempt& attempt, const Host& host, WallTime now);

// Whether anybody saw how the script ended.
bool IsKnown(const std::optional<ExitInfo>& exit);

// Whether there is more than one host or rank, so that people must be told which.
bool IsGang(const JobRecord& record);

// The ranks of a host in order, and how those ended that did:
//   "2 signal 15, 3 exit 1 (failed first)", "0 to 7"
std::string HostRanks(const JobSpec& spec, const Attempt& attempt, uint32_t host);

// The rank or host whose failure ended the attempt; null: none failed, and if one was the first to
// end, then because it was stopped (a time limit, a rule).
const FirstFall* FirstFailure(const Attempt& attempt);

// How the ranks of an attempt ended, one sentence for each step, the first failure first:
//   rank 3 on algo-2 failed first: exit 1
//   then ranks 0 and 1 on algo-1 were stopped by signal 15
// Empty if nothing failed.
std::vector<std::string> FallOrder(const Attempt& attempt);

}  // namespace athanor
