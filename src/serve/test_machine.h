// For tests of this program: a machine that a command reaches, in place of the server's own. Its
// jobs have nothing of the server's home in front of them (tests/apart.py makes such a machine).
#pragma once

#include <memory>

#include "base/result.h"
#include "launch/command/command_backend.h"

namespace athanor {

// What ATHANOR_TEST_MACHINE says: {"name", "reach": [...], "program", "folder"}. Null: it is not
// set.
Result<std::unique_ptr<CommandBackend>> TestMachine();

}  // namespace athanor
