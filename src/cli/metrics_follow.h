// ath metrics -f: points of a job as they arrive.
#pragma once

#include <string>

#include "cli/client.h"
#include "cli/verbs/verbs.h"

namespace athanor {

// Prints the points there are and then new ones, of one metric or (without a name) of all, until
// the job ends.
int FollowMetrics(const Common& common, Client& client, const std::string& job,
                  const std::string& name);

}  // namespace athanor
