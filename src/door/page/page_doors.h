// The routes of the page and of the data it requests; MakeRouter joins them.
#pragma once

#include <vector>

#include "door/doors.h"

namespace athanor {

std::vector<DoorRoute> PageRoutes(DoorContext& context);
std::vector<DoorRoute> LiveRoutes(DoorContext& context);
std::vector<DoorRoute> LogRoutes(DoorContext& context);
std::vector<DoorRoute> SourceRoutes(DoorContext& context);
std::vector<DoorRoute> QueueRoutes(DoorContext& context);
std::vector<DoorRoute> NameRoutes(DoorContext& context);
std::vector<DoorRoute> RunChangeRoutes(DoorContext& context);
std::vector<DoorRoute> RunFileRoutes(DoorContext& context);
std::vector<DoorRoute> MediaRoutes(DoorContext& context);

}  // namespace athanor
