// What a script of a SageMaker job finds that only its request says: hyper-parameters as they were
// sent, and the config files of its channels, hook, profiler and platform parameters. It is decided
// here, so that agents never read a request.
#pragma once

#include "job/spec.h"
#include "link/plan.h"

namespace athanor {

// Does nothing for jobs of other doors.
void FillContract(const JobSpec& spec, AttemptPlan& plan);

}  // namespace athanor
