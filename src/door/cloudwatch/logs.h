// The parts of CloudWatch Logs, for use by each other; for the outside see cloudwatch.h.
#pragma once

#include <optional>

#include "base/text/json.h"
#include "door/cloudwatch/cloudwatch.h"
#include "door/cloudwatch/members.h"

namespace athanor {

inline constexpr char kInvalidLogs[] = "InvalidParameterException";

// What is wrong with the group that the request names; none: it is ours.
std::optional<AwsError> CheckLogGroup(Members& members);

CloudWatchReply GetLogEvents(const CloudWatchSources& sources, const Json& request);
CloudWatchReply FilterLogEvents(const CloudWatchSources& sources, const Json& request);

}  // namespace athanor
