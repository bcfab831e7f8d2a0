// Environments from a conda file, built by micromamba, mamba or conda, whichever this machine has.
#pragma once

#include "base/result.h"
#include "job/record.h"
#include "run/environment/environment.h"

namespace athanor {

// kNotFound: this machine has none of the three.
Result<BuiltEnvironment> BuildCondaEnvironment(const JobSpec& spec,
                                               const EnvironmentOptions& options);

}  // namespace athanor
