// The Shipper sends what a job emits to the server: log bytes, points, usage and the agent's own
// reports, on its own thread. It reads the raw files on a timer, removes secrets, and sends one
// batch at a time; what is not acknowledged is sent again. When the server is away, or a stranger
// answers in its place, it waits with back-off and jitter, and the files on disk are the buffer:
// nothing grows in memory and nothing is lost.
//
// Exactly once: log offsets count scrubbed bytes, and scrubbing does not depend on how the stream
// was cut, so a restarted agent that reads from the start produces the same bytes, of which the
// server stores only the new ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/log.h"
#include "link/plan.h"
#include "link/server_line.h"
#include "link/spool.h"
#include "link/wire.h"
#include "run/events/event_files.h"
#include "watch/scrub/scrubber.h"

namespace athanor {

class Shipper {
 public:
  struct Options {
    const AttemptPlan& plan;
    const Clock& clock;
    Logger& log;
    std::shared_ptr<const SecretPatterns> secrets;      // removed from all that is sent or stored
    std::function<UsageFrame()> usage;                  // asked about once a second
    std::function<void(const ReplyFrame&)> on_command;  // Stop, Fenced; on the shipper's thread
    // What was read, as it is read and before it is sent, including what waits on disk while the
    // server is away; each once, on the shipper's thread. May be empty.
    std::function<void(const PointBatch&)> on_points;
    std::function<void(uint64_t bytes)> on_output;
    std::function<void(const SpoolCheckpoint&)> on_checkpoint;
    Millis stranger_pause = LinePauses::kOfStranger;  // while another server answers
  };
  explicit Shipper(Options options);
  ~Shipper();

  // Ranks are counted over all hosts. Follows a raw stream from its start; the file may not exist
  // yet.
  void Follow(uint32_t rank, LogStream stream, std::string path);
  // Follows the spool of a rank, in `dir`, and keeps free segments there.
  Status FollowSpool(uint32_t rank, const HeldFolder& dir);
  // Follows the event files that the script writes. A metric of the job file (by regex) or of
  // athanor.log owns its name: scalars of that name in an event file are not sent.
  void FollowEvents(EventFiles::Options options);
  // Queues a report, in order with those before it.
  void Send(ReportFrame frame);
  void Start();
  // Waits until the spools are read as far as they are written by now, so that on_checkpoint has
  // reported every save. Needs no server, but a report may be in progress to one that hangs: not
  // longer than `limit`.
  void CatchUp(Millis limit);
  // Waits until everything written so far, and every report, is acknowledged; for ever if
  // necessary. False: the attempt was fenced off.
  bool Drain();
  void Stop();

  // The last lines that a rank printed, newest last; for the diagnosis.
  std::string Tail(uint32_t rank, LogStream stream) const;
  bool done_called() const;  // athanor.done()
  Millis silence() const;    // since the server last accepted a report
  // Asks for a stop that all ranks see through their control page.
  void RaiseStop(const Cause& cause, WallTime deadline);
  // What athanor.should_checkpoint() follows; 0: no advice.
  void AdviseCheckpoints(Millis every);
  // Asks every rank to write its captured steps to disk.
  void AskForCapture();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
