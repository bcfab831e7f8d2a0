// The TCP port of a home. Shells and programs keep the server's address for a long time
// (MLFLOW_TRACKING_URI, the endpoint of AWS clients), so the server of a home uses the port that it
// had before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace athanor {

inline constexpr uint16_t kUsualPort = 7070;

// `name`: of the file in the home.
std::optional<uint16_t> KeptPort(const std::string& home, const std::string& name = "port");
Status KeepPort(const std::string& home, uint16_t port, const std::string& name = "port");

// Ports to try if another program uses `taken`: below those that the system uses for outgoing
// connections, and in a different order for each home, so that two homes do not collide. The last
// is 0, any.
std::vector<uint16_t> PortsInsteadOf(uint16_t taken, const std::string& home);

struct OwnPort {
  uint16_t port = 0;
  std::optional<uint16_t> instead_of;  // that another program uses
  bool was_kept = false;               // the home had that other one before
};
// Listens at the port that the home has kept, otherwise at `usual` (0: any); if another program
// uses it, at another one, which is kept from then on. `listen` answers kConflict for a port that
// is taken. Waits a moment for one that was kept: a child that a killed server was starting may
// hold it.
Result<OwnPort> ListenAtOwnPort(const std::string& home, const std::string& name, uint16_t usual,
                                const std::function<Result<uint16_t>(uint16_t)>& listen);

}  // namespace athanor
