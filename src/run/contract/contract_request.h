// What the contract with a script takes from the request of a SageMaker job, in addition to the
// spec: hyper-parameters as they were sent, and the config files and variables of its channels,
// hook, profiler and platform parameters. Nothing for other jobs. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/spec.h"

namespace athanor {

// Files of input/config by name; they replace the contract's own.
std::map<std::string, std::string> RequestFiles(const JobSpec& spec);
// sagemaker_* as they were sent: for the platform; the spec's own parameters do not include them.
std::vector<Param> RequestPlatformParams(const JobSpec& spec);

}  // namespace athanor
