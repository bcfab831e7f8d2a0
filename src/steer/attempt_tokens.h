// What the agents and scripts of an attempt prove themselves with. A token is made from the attempt
// and the server's key, so that it is verified without a lookup. Whether the attempt still lives is
// the caller's to check. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "job/ids.h"

namespace athanor {

// Of the agent of one host: for what that host reports, and for its files.
std::string IngestToken(const std::string& key, AttemptId attempt, uint32_t host);
// Of the scripts of all hosts: for MLflow's calls, and of those that change something, only those
// about their own job (door/mlflow/job_rights.h).
std::string RunToken(const std::string& key, AttemptId attempt);

// Whose a token is; none: it was not made with this key.
struct AgentId {
  AttemptId attempt;
  uint32_t host = 0;
};
std::optional<AgentId> ReadIngestToken(const std::string& key, std::string_view token);
std::optional<AttemptId> ReadRunToken(const std::string& key, std::string_view token);

}  // namespace athanor
