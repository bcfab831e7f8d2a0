// How people name a job: by id, part of an id, name, or @last.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "job/ids.h"

namespace athanor {

class Connection;
class Statement;

// See JobStore::Resolve. `named`: when the newest job of that name may have been created; none:
// there was never one.
Result<JobId> ResolveReference(Connection& connection, std::string_view reference,
                               std::optional<int64_t> named);

// A row of `at` (?1: `text`, ?2: `created`), otherwise of `anywhere` (?1: `text`), which reads the
// whole store; null: there is none. See NewestTimes.
Result<const Statement*> NewestRow(Connection& connection, std::string_view text, int64_t created,
                                   std::string_view at, std::string_view anywhere);

}  // namespace athanor
