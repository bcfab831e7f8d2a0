// The TCP port of a home. Shells and programs keep the server's address for a long time
// (MLFLOW_TRACKING_URI, the endpoint of AWS clients), so the server of a home uses the port that it
// had before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace athanor {

inline constexpr uint16_t kUsualPort = 7070;

std::optional<uint16_t> KeptPort(const std::string& home);
Status KeepPort(const std::string& home, uint16_t port);

// Ports to try if another program uses `taken`: below those that the system uses for outgoing
// connections, and in a different order for each home, so that two homes do not collide. The last
// is 0, any.
std::vector<uint16_t> PortsInsteadOf(uint16_t taken, const std::string& home);

}  // namespace athanor
