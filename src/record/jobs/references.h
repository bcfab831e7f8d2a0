// How people name a job: by id, part of an id, name, or @last.
#pragma once

#include <string_view>

#include "base/result.h"
#include "job/ids.h"

namespace athanor {

class Connection;

// See JobStore::Resolve.
Result<JobId> ResolveReference(Connection& connection, std::string_view reference);

}  // namespace athanor
