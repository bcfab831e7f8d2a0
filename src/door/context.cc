#include "door/context.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>

#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kAgentPrefix = "athjob_";
constexpr std::string_view kRunPrefix = "athrun_";

bool IsSame(std::string_view token, const std::string& right) {
  return right.size() == token.size() &&
         CRYPTO_memcmp(right.data(), token.data(), right.size()) == 0;
}

// What a token of the form PREFIX_WHOSE_SIGNATURE says whose it is, before that is verified.
std::string WhoseToken(std::string_view token, std::string_view prefix) {
  const auto parts = StartsWith(token, prefix) ? Split(token.substr(prefix.size()), '_')
                                               : std::vector<std::string>();
  return parts.size() == 2 ? parts[0] : "";
}

}  // namespace

Result<JobRecord> FindJob(const DoorContext& context, std::string_view reference) {
  ATHANOR_TRY(auto id, context.jobs.Resolve(reference));
  // Memory is newer than the store by what is being committed; an end is reported only when it is
  // stored.
  const auto* live = context.engine.Live(id);
  if (live && !IsTerminal(live->state)) return *live;
  return context.jobs.Find(id);
}

Resumes ResumesOf(const JobRecord& record) {
  Resumes resumes;
  for (const auto& attempt : record.attempts) {
    if (attempt.resumed_step) resumes[attempt.number] = *attempt.resumed_step;
  }
  return resumes;
}

std::optional<JobId> JobNowIn(const DoorContext& context, AttemptId attempt) {
  const auto job = context.engine.JobOf(attempt);
  const auto* live = job ? context.engine.Live(*job) : nullptr;
  const auto* current = live ? live->current() : nullptr;
  const bool now = current && current->id == attempt && current->ended.ms == 0;
  return now ? job : std::nullopt;
}

std::string IngestToken(const std::string& key, AttemptId attempt, uint32_t host) {
  // Keyed twice, so that a token cannot be extended into another one's. That of the first host is
  // as it was when there was one host only: agents outlive a server that is replaced.
  const auto id = attempt.ToString() + (host == 0 ? "" : "." + std::to_string(host));
  return std::string(kAgentPrefix) + id + "_" + Sha256Hex(key + Sha256Hex(key + id));
}

std::optional<AgentId> ReadIngestToken(const std::string& key, std::string_view token) {
  // ATTEMPT, or ATTEMPT.HOST for the hosts after the first.
  const auto whose = WhoseToken(token, kAgentPrefix);
  const auto dot = std::min(whose.find('.'), whose.size());
  const auto attempt = AttemptId::Parse(whose.substr(0, dot));
  uint32_t host = 0;
  if (dot < whose.size()) {
    std::from_chars(whose.data() + dot + 1, whose.data() + whose.size(), host);
  }
  // Compared as a whole: it does not matter what else the number could have been.
  if (!attempt || !IsSame(token, IngestToken(key, *attempt, host))) return std::nullopt;
  return AgentId{*attempt, host};
}

std::string RunToken(const std::string& key, AttemptId attempt) {
  auto id = attempt.ToString();
  return std::string(kRunPrefix) + id + "_" + Sha256Hex(key + Sha256Hex(key + "run" + id));
}

std::optional<AttemptId> ReadRunToken(const std::string& key, std::string_view token) {
  const auto attempt = AttemptId::Parse(WhoseToken(token, kRunPrefix));
  if (!attempt || !IsSame(token, RunToken(key, *attempt))) return std::nullopt;
  return attempt;
}

}  // namespace athanor
