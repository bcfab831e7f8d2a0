// How the hosts and ranks of a job look on a terminal. Reads a job as the API shows it.
#pragma once

#include <string>
#include <vector>

#include "base/text/json.h"
#include "cli/screen/output.h"

namespace athanor {

// The hosts of an attempt as a table, with what each uses and how its ranks are:
//   HOST    STATE    CPU    MEMORY         RANKS
//   algo-1  Running  187 %  1.2 GiB        0 and 1
//   algo-2  Ended    -      peak 900 MiB   2 exit 0, 3 exit 1 (failed first)
// Empty for a job of one rank, whose attempt says all of it.
std::string HostsTable(const Json& job, const Json& attempt, const Terminal& terminal);

// "2 nodes with 4 processes each", of the resources of a spec; empty for one rank.
std::string RanksOf(const Json& resources);

// Who failed first in the last attempt, and what became of the others; empty: nobody failed, or
// there is one rank.
std::vector<std::string> FallOrderOf(const Json& job);

}  // namespace athanor
