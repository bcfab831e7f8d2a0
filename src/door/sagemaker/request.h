// From a CreateTrainingJob body to a JobSpec: checked against the service's limits first, then
// against what this system can do, so that nothing is ignored silently. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text/json.h"
#include "door/aws/aws_front.h"
#include "door/sagemaker/images.h"
#include "job/spec.h"

namespace athanor::sagemaker {

// What a request is checked against on this machine.
struct Surroundings {
  const ImageMap& images;
  HostPython host;
  bool has_gpu = false;
};

struct TrainingRequest {
  JobSpec spec;         // without source and, unless the request names one, command
  std::string source;   // s3:// of the tar.gz with the script; empty: none
  std::string program;  // the script in it
  std::vector<std::string> args;
  std::vector<std::string> buckets;  // that must exist
};

inline constexpr char kNamePattern[] = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}";

tl::expected<TrainingRequest, AwsError> ReadTrainingRequest(const Json& body,
                                                            const Surroundings& here);

// The command that runs `program` of the source with `args`, as the training toolkit would:
// a .py by Python, a .sh as a program, anything else as a command line.
std::vector<std::string> CommandFor(const std::string& program,
                                    const std::vector<std::string>& args);

}  // namespace athanor::sagemaker
