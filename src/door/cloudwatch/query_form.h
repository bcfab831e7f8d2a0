// One form for both of CloudWatch's protocols: a Query form becomes the object that the JSON
// protocol would have sent (texts stay texts), and an answer is written as JSON or as the inner
// XML of a Query result. In answers the members Timestamp and Timestamps are milliseconds;
// JSON gets seconds, XML ISO 8601. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"

namespace athanor {

// "Dimensions.member.1.Name=a" -> {"Dimensions":[{"Name":"a"}]}. Lists may have gaps. kInvalid:
// a name is used as two things, or is too deep, or a list too long.
Result<Json> ObjectFromForm(const std::vector<std::pair<std::string, std::string>>& form);

std::string MetricsJson(const Json& answer);
std::string MetricsXml(const Json& answer);

}  // namespace athanor
