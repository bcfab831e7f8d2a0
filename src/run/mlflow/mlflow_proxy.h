// MlflowProxy is the MLflow server that a script sees: a loopback port of the agent. Calls that log
// are kept in files (CallSpool) and delivered in order, each with its position, by which the server
// accepts it only once; waiting metrics are sent in batches (MetricJoin). Calls whose answer
// matters are forwarded, after everything that was logged before them. So if the server is away, no
// script stalls and nothing that was logged is lost.
//
//   kLog   (metrics, tags)            kept, answered at once
//   kTell  (params, updates, inputs)  kept; answered by the server, or at once while it is away
//   kAsk   (reads, new ids, files)    passed on; 503, which clients try again, after `ask_patience`
//
// While the server is away, a run or experiment that was read before is answered as it was then.
// Clients print links to this address ("View run ... at"): a browser is redirected to the server's
// page. Only the job's own token is accepted, and calls are forwarded only with it: the script may
// do here what that token may do at the server, and not what the agent may do. If a call that was
// kept is refused later, the job gets a note. What cannot be kept (disk full, too much waiting) is
// dropped, counted and reported: telemetry may be lost, a run may not.
//
// Secrets are removed from every call before it is kept or forwarded: from addresses, fields, and
// artifacts that are text. Other artifacts pass unchanged.
//
// A restarted agent listens on the same port and continues with what is kept. Bodies and answers
// that are files pass through unnamed files on disk, never through memory.
//
// Points that the script logs to the job's own run are shown to the agent (`on_points`), too, as
// they come: whoever acts on them does not wait for the server. What an earlier agent kept, and
// could not deliver, is shown again at the start.
//
// Threads: three or more of its own; `note` comes on any of them, `on_points` on one of them or,
// during Start, on the caller's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "job/ids.h"
#include "job/point.h"
#include "job/record.h"
#include "link/server_line.h"
#include "run/ship/exit_gate.h"

namespace athanor {

class MlflowProxy {
 public:
  struct Options {
    std::string dir;     // of the attempt; created if needed
    std::string server;  // as in AttemptPlan
    std::string token;   // the script's
    Logger& log;
    std::function<void(Cause)> note;
    ExitGate gate{};  // what passes and what is kept goes through it
    Millis tell_patience{1'000};
    Millis ask_patience{30'000};
    uint64_t most_kept = 1 << 30;  // bytes
    std::string page = {};         // the server's, "http://127.0.0.1:7070"; empty: it has none
    JobId run = {};                // the job's own
    std::function<void(const PointBatch&)> on_points = {};  // may be empty
    std::string pin = {};                                   // of https, as in AttemptPlan
    Millis stranger_pause = LinePauses::kOfStranger;        // while another server answers
  };
  static Result<std::unique_ptr<MlflowProxy>> Start(Options options);
  ~MlflowProxy();  // ends what is in progress; what is kept stays on disk
  MlflowProxy(const MlflowProxy&) = delete;
  MlflowProxy& operator=(const MlflowProxy&) = delete;

  std::string url() const;  // "http://127.0.0.1:41234"
  // Waits until everything kept is delivered; for ever if necessary. False: GiveUp was called.
  bool Drain();
  void GiveUp();  // the attempt is fenced off; safe from any thread

 private:
  struct Impl;
  explicit MlflowProxy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace athanor
