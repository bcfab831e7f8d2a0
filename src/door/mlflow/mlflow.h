// MLflow's API for the other doors: its routes, and who may call them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "door/doors.h"

namespace athanor {

std::vector<DoorRoute> MlflowRoutes(DoorContext& context);
// By Route::name; every one of its routes has a row.
std::vector<std::pair<std::string, Access>> MlflowPermissions();

}  // namespace athanor
