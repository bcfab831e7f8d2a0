// Trials of a tuning job that came through this door: training jobs as CreateTrainingJob would
// make them, from the tuning job's definition and the parameters of one trial.
#pragma once

#include <string>

#include "base/result.h"
#include "base/text/json.h"
#include "door/aws/aws_front.h"
#include "door/context.h"
#include "study/trial_runner.h"

namespace athanor::sagemaker {

// The choice among several definitions, and the separator before a parameter's own name.
inline constexpr char kDefinition[] = "_definition";
inline constexpr char kOf = '/';

// "<tuning job>-001-<8 digits>": the same for the same try of the same trial.
std::string TrialName(const TrialOrder& order);

// The CreateTrainingJob body of one trial. `params` are the search's.
Json TrainingBody(const Json& tuning, const std::string& name, const Json& params);

// `order.spec.request` is {"tuning": the request, "jobs": {definition: a job with its unpacked
// source}}; a single definition has no name. On the loop's thread.
Result<JobSpec> TrialSpec(const DoorContext& context, const TrialOrder& order, const Json& params);

}  // namespace athanor::sagemaker
