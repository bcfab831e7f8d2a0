// What the contract with a script takes from the request of a SageMaker job, beyond what the
// spec itself says: hyper-parameters as they were sent, and the config files and variables of
// its channels, hook, profiler and platform parameters. Nothing for jobs of other doors. Pure.
#pragma once

#include <map>
#include <string>

#include "job/spec.h"

namespace athanor {

// Files of input/config by name; they replace the contract's own.
std::map<std::string, std::string> RequestFiles(const JobSpec& spec);
// SM_FRAMEWORK_PARAMS and the like, over what `env` has.
void AddRequestVariables(const JobSpec& spec, std::map<std::string, std::string>& env);

}  // namespace athanor
