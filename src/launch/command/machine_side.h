// The half of a CommandBackend that runs on the other machine, for one call: a ProcessBackend on a
// folder there, so that hosts are started, found again and ended as they are on the server's own
// machine. What it leaves behind are agents with sessions of their own.
#pragma once

#include <functional>
#include <string>

#include "launch/backend.h"
#include "link/host_paths.h"

namespace athanor {

struct MachineSide {
  std::string folder;   // its own; made if it is not there
  std::string program;  // athanor
  HostPaths paths;      // but for what lies below `folder`
};

// Carries out the call that `request` holds and returns the answer to print.
std::string AnswerCall(const MachineSide& side, const std::string& request);

}  // namespace athanor
