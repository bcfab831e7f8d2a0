#include "steer/attempt_tokens.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// What a token of the form PREFIX_WHOSE_SIGNATURE says whose it is, before that is verified.
std::string WhoseToken(std::string_view token, std::string_view prefix) {
  const auto parts = StartsWith(token, prefix) ? Split(token.substr(prefix.size()), '_')
                                               : std::vector<std::string>();
  return parts.size() == 2 ? parts[0] : "";
}

}  // namespace

std::string IngestToken(const std::string& key, AttemptId attempt, uint32_t host) {
  // Keyed twice, so that a token cannot be extended into another one's. That of the first host is
  // as it was when there was one host only: agents outlive a server that is replaced.
  const auto id = attempt.ToString() + (host == 0 ? "" : "." + std::to_string(host));
  return "athjob_" + id + "_" + Sha256Hex(key + Sha256Hex(key + id));
}

std::string RunToken(const std::string& key, AttemptId attempt) {
  const auto id = attempt.ToString();
  return "athrun_" + id + "_" + Sha256Hex(key + Sha256Hex(key + "run" + id));
}

std::optional<AgentId> ReadIngestToken(const std::string& key, std::string_view token) {
  // ATTEMPT, or ATTEMPT.HOST for the hosts after the first.
  const auto whose = WhoseToken(token, "athjob_");
  const auto dot = std::min(whose.find('.'), whose.size());
  const auto attempt = AttemptId::Parse(whose.substr(0, dot));
  uint32_t host = 0;
  if (dot < whose.size()) {
    std::from_chars(whose.data() + dot + 1, whose.data() + whose.size(), host);
  }
  // Compared as a whole: it does not matter what else the number could have been.
  if (!attempt || !SameSecretText(token, IngestToken(key, *attempt, host))) return std::nullopt;
  return AgentId{*attempt, host};
}

std::optional<AttemptId> ReadRunToken(const std::string& key, std::string_view token) {
  const auto attempt = AttemptId::Parse(WhoseToken(token, "athrun_"));
  if (!attempt || !SameSecretText(token, RunToken(key, *attempt))) return std::nullopt;
  return attempt;
}

}  // namespace athanor
