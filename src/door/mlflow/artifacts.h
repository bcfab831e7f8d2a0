// The routes of MLflow's artifacts: those that carry files, in addition to the JSON calls.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "door/doors.h"
#include "door/mlflow/calls.h"

namespace athanor {

std::span<const MlflowCall> ArtifactCalls();
std::vector<DoorRoute> ArtifactRoutes(const std::shared_ptr<Mlflow>& mlflow);

}  // namespace athanor
