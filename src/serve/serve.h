// The server: wires the rooms together and runs until it is asked to stop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "link/server_record.h"
#include "serve/home.h"

namespace athanor {

struct ServeOptions {
  Home home;
  std::string address = "127.0.0.1";
  std::optional<uint16_t> port;  // none: the home's own (serve/kept_port.h); 0: any
  StartedBy by = StartedBy::kHand;
  bool revive = false;  // only if a server was killed (link/server_record.h)
  std::string unit;     // of the service, "user/NAME" or "system/NAME"
  bool json = false;
  bool simulate = false;
  std::string tls_cert;
  std::string tls_key;
  std::string mlflow_artifact_root;  // empty: in the home, through the server
};

// The exit status of the process, or why the server did not start. SIGTERM leaves jobs running.
// Ends when its home is removed.
Result<int> Serve(const ServeOptions& options);

}  // namespace athanor
