// The routes of disk_routes.cc: the disk by job, and the removal of many jobs.
#pragma once

#include <vector>

#include "door/doors.h"

namespace athanor {

std::vector<DoorRoute> DiskRoutes(DoorContext& context);

}  // namespace athanor
