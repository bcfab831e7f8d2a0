// Which part of a job's log a request asks for, by `phase`, `rank` and `host`.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "job/record.h"
#include "net/http/http_types.h"
#include "record/logs/log_lines.h"

namespace athanor {

// `phase`: run (the default), setup, all or none. `rank`: of all hosts, from 0; the setup is that
// of its host. Of a job with one rank, any other rank has printed nothing. `host`: "algo-2", or 2
// for it. kInvalid: no such phase, or no number. kNotFound: no such host, or, of several, no such
// rank.
Result<LogPart> LogPartIn(const Request& request, const JobRecord& record);
Error NoSuchRank(const JobRecord& record, uint64_t rank);

// A header of `GET /logs`: there if the bytes are of several ranks.
inline constexpr std::string_view kSeveralRanks = "Athanor-Ranks";

// Whether lines of several ranks come together in this part: then readers say whose each is.
bool HasSeveralRanks(const LogPart& part, const JobRecord& record);

}  // namespace athanor
