// ScriptLine is where a script's own clients (S3, MLflow, anything that speaks HTTP) find a server
// that is on another machine: a port of this machine's loopback. Each connection is passed on to
// the server over TLS, to the one that has the pinned key and no other. Bytes pass unchanged, and
// no credential is added: who calls is what the client says, with the keys of its job.
//
// A restarted agent listens on the same port, because the script has the address in its
// environment; connections that were open break, as they would with the server itself.
//
// Threads: its own. At most a few hundred connections at once; others wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/exec/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "link/plan.h"
#include "link/server_line.h"

namespace athanor {

class ScriptLine {
 public:
  struct Options {
    const ServerLine& line;
    std::string port_file;  // where the port is kept
    Logger& log;
    Millis connect_within{10'000};
  };
  static Result<std::unique_ptr<ScriptLine>> Start(const Options& options);
  ~ScriptLine();
  ScriptLine(const ScriptLine&) = delete;
  ScriptLine& operator=(const ScriptLine&) = delete;

  std::string url() const;  // "http://127.0.0.1:41234"

 private:
  class Work;
  explicit ScriptLine(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

// For a host whose server is on another machine: makes one, and sets the host's url and aws_dir to
// what its script is given. Null: the server is here, and is found without help. After an error the
// script has no server, which the job is to be told.
Result<std::unique_ptr<ScriptLine>> LineForScript(HostPlan& plan, Logger& log);

}  // namespace athanor
