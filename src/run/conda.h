// Environments from a conda file, made by whichever of micromamba, mamba and conda
// this machine has.
#pragma once

#include "base/result.h"
#include "job/record.h"
#include "run/environment.h"

namespace athanor {

// kNotFound: none of the three is there.
Result<BuiltEnvironment> BuildCondaEnvironment(const JobSpec& spec,
                                               const EnvironmentOptions& options);

}  // namespace athanor
