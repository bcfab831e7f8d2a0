#include "door/native/log_part.h"

#include <algorithm>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/queries.h"

namespace athanor {
namespace {

Error Wrong(ErrorCode code, std::string what, std::string hint, std::string_view got) {
  return {code,
          std::move(what),
          std::move(hint),
          "got '" + Printable(got.substr(0, 80)) + "'",
          "ATH-R0014",
          ""};
}

// Of any attempt; before the first, as many as it will have.
uint32_t HostsOf(const JobRecord& record) {
  size_t most = record.spec.resources.nodes;
  for (const auto& attempt : record.attempts) most = std::max(most, attempt.hosts.size());
  return static_cast<uint32_t>(most);
}

uint64_t RanksOf(const JobRecord& record) {
  return uint64_t{HostsOf(record)} * std::max(record.spec.resources.processes, 1u);
}

// "algo-2" or "2" is the second.
Result<uint32_t> HostIn(const std::string& text, const JobRecord& record) {
  const uint32_t hosts = HostsOf(record);
  for (uint32_t host = 0; host < hosts; ++host) {
    if (text == HostNameOf(host) || text == std::to_string(host + 1)) return host;
  }
  return Fail(Wrong(ErrorCode::kNotFound, record.spec.name + " has no such host",
                    hosts == 1 ? "leave it out: the job has one host, " + HostNameOf(0)
                               : "its hosts are " + HostNameOf(0) + " to " + HostNameOf(hosts - 1),
                    text));
}

}  // namespace

Error NoSuchRank(const JobRecord& record, uint64_t rank) {
  const uint64_t ranks = RanksOf(record);
  return Wrong(ErrorCode::kNotFound, record.spec.name + " has no such rank",
               ranks == 1 ? "leave it out: the job has one rank, 0"
                          : fmt::format("its ranks are 0 to {}", ranks - 1),
               std::to_string(rank));
}

Result<LogPart> LogPartIn(const Request& request, const JobRecord& record) {
  LogPart part;
  const auto phase = request.Query("phase").value_or("run");
  part.setup = phase == "setup" || phase == "all";
  part.run = phase == "run" || phase == "all";
  if (!part.setup && !part.run && phase != "none") {
    return Fail(
        Wrong(ErrorCode::kInvalid, "no such phase of a log", "phase=run, setup or all", phase));
  }
  ATHANOR_TRY(const auto rank, WholeNumber(request, "rank"));
  const uint32_t each = std::max(record.spec.resources.processes, 1u);
  if (rank) {
    // Of a job with one rank, another one's log is empty, as it always was.
    const uint64_t ranks = RanksOf(record);
    if (*rank >= ranks && ranks > 1) return Fail(NoSuchRank(record, *rank));
    part.rank = static_cast<uint32_t>(std::min<uint64_t>(*rank, UINT32_MAX));
    if (HostsOf(record) > 1) part.host = *part.rank / each;
  }
  const auto host = request.Query("host");
  if (!host || host->empty()) return part;
  ATHANOR_TRY(const uint32_t index, HostIn(*host, record));
  if (part.rank && part.host.value_or(0) != index) {
    Error error = Wrong(
        ErrorCode::kInvalid,
        fmt::format("{} has no rank {} on {}", record.spec.name, *part.rank, HostNameOf(index)),
        "give only the rank, or only the host", *host);
    error.why = fmt::format("rank {} runs on {}", *part.rank, HostNameOf(part.host.value_or(0)));
    return Fail(std::move(error));
  }
  part.host = index;
  return part;
}

bool HasSeveralRanks(const LogPart& part, const JobRecord& record) {
  if (part.rank) return false;
  return record.spec.resources.processes > 1 || (!part.host && HostsOf(record) > 1);
}

}  // namespace athanor
