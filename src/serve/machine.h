// Counts what this machine has for jobs.
#pragma once

#include "job/inventory.h"

namespace athanor {

Inventory CountThisMachine();

}  // namespace athanor
