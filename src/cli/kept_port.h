// The TCP port of a home. Shells and programs keep the server's address for long (MLFLOW_TRACKING_URI,
// the endpoint of AWS clients), so a home's server comes back to the port that it had.
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

// Ports to try when `taken` is another program's: below those that the system gives to outgoing
// connections, and in another order for each home, so that two homes do not meet. The last is 0, any.
std::vector<uint16_t> PortsInsteadOf(uint16_t taken, const std::string& home);

}  // namespace athanor
