// HyperParameters as the training toolkit reads them: each value is JSON if it parses, otherwise
// text; sagemaker_* and _tuning_objective_metric are for the platform. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "job/spec.h"

namespace athanor::sagemaker {

struct HyperParameters {
  std::vector<Param> params;                    // the user's, by name
  std::vector<std::string> args;                // as the toolkit appends them to argv
  std::map<std::string, std::string> platform;  // sagemaker_*, decoded to plain text
};

HyperParameters ReadHyperParameters(const Json& map);  // of strings

// A JSON value as Python's str() shows it: True, None, [1, 'a'], 1e-05.
std::string PythonText(const Json& value);

}  // namespace athanor::sagemaker
