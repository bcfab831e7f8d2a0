// From a CreateHyperParameterTuningJob body to a StudySpec, checked against the service's limits
// and then against what can be done here. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text/json.h"
#include "door/aws/aws_front.h"
#include "study/spec.h"

namespace athanor::sagemaker {

inline constexpr char kTuningName[] = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,31}";
// Names a tuning job for record/studies, whatever the names of other studies.
std::string TuningKey(const std::string& name);

// Without job and request, which need the disk.
tl::expected<StudySpec, AwsError> ReadTuningRequest(const Json& body);

// The names of the definitions; one that is empty for a single definition.
std::vector<std::string> DefinitionNames(const Json& body);

}  // namespace athanor::sagemaker
