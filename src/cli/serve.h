// `ath serve`: wires the rooms together and runs until told to stop.
#pragma once

#include <cstdint>
#include <string>

#include "cli/home.h"

namespace athanor {

struct ServeOptions {
  Home home;
  std::string address = "127.0.0.1";
  uint16_t port = 7070;
  bool any_port = false;  // started by a client: another port will do when 7070 is taken
  bool json = false;
  bool simulate = false;
  std::string tls_cert;
  std::string tls_key;
  std::string mlflow_artifact_root;  // empty: in the home, through the server
};

// The exit status of the process. SIGTERM leaves jobs running.
int Serve(const ServeOptions& options);

}  // namespace athanor
