// What can be checked about a job without a machine. The parser calls the parts as it reads, so
// that an error has a line; CheckSpec runs all of them, for specs that came by flags or through the
// API. Pure; errors are kInvalid with id, why and hint.
#pragma once

#include <string_view>

#include "base/result.h"
#include "job/spec.h"

namespace athanor {

Status CheckSpec(const JobSpec& spec);

// `what` is its name in messages: "job name".
Status CheckName(std::string_view what, std::string_view name);
Status CheckParam(const Param& param);
Status CheckEnvironmentVariable(std::string_view name, std::string_view value);
Status CheckTag(std::string_view key, std::string_view value);
Status CheckChannel(const ChannelSpec& channel);
Status CheckMetric(const MetricSpec& metric);
Status CheckSecret(const SecretSpec& secret);
Status CheckEnvironment(const EnvironmentSpec& environment);
Status CheckResources(const ResourceSpec& resources);
Status CheckLimits(const LimitSpec& limits);
Status CheckCheckpoints(const CheckpointSpec& checkpoints);
Status CheckRuleOfJob(const RuleSpec& rule);
Status CheckRetry(const RetrySpec& retry);
Status CheckPriority(int64_t priority);

// A name that a POSIX shell accepts for a variable.
bool IsVariableName(std::string_view name);

inline constexpr uint32_t kMostNodes = 1024;
inline constexpr uint32_t kMostProcesses = 1024;  // of a node
inline constexpr uint32_t kMostRanks = 8192;      // of all nodes

inline constexpr int64_t kPriorityLimit = 1000;  // either way

}  // namespace athanor
