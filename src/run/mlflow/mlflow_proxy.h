// MlflowProxy is the MLflow server that a script sees: a loopback port of the agent's. Calls that
// log are kept in files (CallSpool) and delivered in order, each with its place, by which the
// server takes it once; metrics that wait go in batches (MetricJoin). Calls whose answer matters
// are passed on, after all that was logged before them. So a server that is away stalls no script
// and loses nothing that was logged.
//
//   kLog   (metrics, tags)            kept, answered at once
//   kTell  (params, updates, inputs)  kept; answered by the server, or at once while it is away
//   kAsk   (reads, new ids, files)    passed on; 503, which clients try again, after `ask_patience`
//
// A run or experiment that was read before is answered as it was then while the server is away.
// Clients print links to this address ("View run ... at"): a browser is sent on to the server's page.
// Only the job's own token is let in, and only with it are calls passed on: the script may do
// here what that token may do at the server, and nothing that the agent may. A call that is kept
// and refused later is told as a note on the job. What cannot be kept (disk full, too much waits)
// is dropped, counted and told: telemetry may be lost, a run may not.
//
// Secrets are taken out of every call before it is kept or passed on: out of addresses, fields, and
// artifacts that are text. An artifact that is none passes as it is.
//
// A restarted agent listens on the same port and goes on with what is kept. Bodies and answers
// that are files pass through unnamed files on disk, never through memory.
//
// Threads: three or more of its own; `note` comes on any of them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "job/record.h"
#include "run/exit_gate.h"

namespace athanor {

class MlflowProxy {
 public:
  struct Options {
    std::string dir;     // of the attempt; made if need be
    std::string server;  // unix:/… or http://…
    std::string token;   // the script's
    Logger& log;
    std::function<void(Cause)> note;
    ExitGate gate{};  // what passes and what is kept goes through it
    Millis tell_patience{1'000};
    Millis ask_patience{30'000};
    uint64_t most_kept = 1 << 30;  // bytes
    std::string page = {};  // the server's, "http://127.0.0.1:7070"; empty: it has none
  };
  static Result<std::unique_ptr<MlflowProxy>> Start(Options options);
  ~MlflowProxy();  // ends what is under way; what is kept stays on disk
  MlflowProxy(const MlflowProxy&) = delete;
  MlflowProxy& operator=(const MlflowProxy&) = delete;

  std::string url() const;  // "http://127.0.0.1:41234"
  // Waits until everything kept is delivered; for ever if need be. False: GiveUp was called.
  bool Drain();
  void GiveUp();  // the attempt is fenced off; safe from any thread

 private:
  struct Impl;
  explicit MlflowProxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace athanor
