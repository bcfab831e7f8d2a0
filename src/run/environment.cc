#include "run/environment.h"

namespace athanor {

Result<BuiltEnvironment> BuildEnvironment(const JobSpec& spec, const EnvironmentOptions&) {
  const auto& asked = spec.environment;
  if (asked.requirements.empty() && asked.conda.empty() && asked.base != "isolated" &&
      asked.base != "system") {
    return BuiltEnvironment{};
  }
  return Fail(ErrorCode::kInvalid, "building environments comes with the next commit");
}

}  // namespace athanor
