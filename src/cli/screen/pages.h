// Lists that a server returns page by page, fetched until there are as many as requested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/text/json.h"
#include "cli/client.h"

namespace athanor {

inline constexpr size_t kAllPages = SIZE_MAX;

struct JobRows {
  std::string rows;      // JSON, the inside of an array
  size_t shown = 0;      // of `matched`
  uint64_t matched = 0;  // without a limit
};
// `filter` is "&state=..." and so on. The newest `limit`.
Result<JobRows> FetchJobs(Client& client, const std::string& filter, size_t limit);

// {"matched": N, "runs": [...]}. `query` is what follows "/api/v1/runs?limit=N".
Result<Json> FetchRuns(Client& client, const std::string& query, size_t limit);

// {"waiting": [...], "matched": N, "machine": ...}
Result<Json> FetchQueue(Client& client, size_t limit);

// "20 of 100,007 jobs; all of them: COMMAND", as a hint, if there are more than are shown.
void SayMore(size_t shown, uint64_t matched, const char* things, const std::string& command,
             bool quiet);

}  // namespace athanor
