// What the contract with a script takes from the request of a SageMaker job, beyond what the
// spec itself says: hyper-parameters as they were sent, and the config files and variables of
// its channels, hook, profiler and platform parameters. Nothing for jobs of other doors. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/spec.h"

namespace athanor {

// Files of input/config by name; they replace the contract's own.
std::map<std::string, std::string> RequestFiles(const JobSpec& spec);
// sagemaker_* as they were sent: the platform's, which the spec's own parameters leave out.
std::vector<Param> RequestPlatformParams(const JobSpec& spec);

}  // namespace athanor
