// Reports takes what the agents say: it applies it in order, and answers with what was stored and
// what the agent must do. The server's door and the simulation use the same one.
//
// Whose report it is says the agent's token: an attempt and a host of it. Frames of another host,
// and of ranks of another host, are refused, and nothing of such a report is taken.
//
// Threads: the engine's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "link/wire.h"
#include "steer/engine.h"

namespace athanor {

// Who runs a host of an attempt.
struct Reporter {
  JobId job;
  AttemptId attempt;
  uint32_t number = 1;  // of the attempt
  uint32_t host = 0;
  bool current = false;  // what a replaced attempt says of itself is not what the job does now
};

// Where that goes which is not part of the record.
class ReportSink {
 public:
  virtual ~ReportSink() = default;
  // How much of the stream is stored now. An error that a repetition may mend ends the report.
  virtual Result<uint64_t> TakeLog(const Reporter& from, const LogFrame& frame) = 0;
  virtual Status TakePoints(const Reporter& from, const PointBatch& batch) = 0;
  // Of the current attempt only:
  virtual void TakeUsage(const Reporter& from, const UsageFrame& frame) = 0;
  virtual void TakeProgress(const Reporter& from, const ProgressFrame& frame) = 0;
  virtual void TakeSupervisor(const Reporter& from, uint64_t pid) = 0;
};

class Reports {
 public:
  struct Answer {
    bool fenced = false;  // the attempt is over: the agent ends what is left
    std::optional<Error> refused;
    std::vector<ReplyFrame> frames;
  };
  Reports(Engine& engine, ReportSink& sink) : engine_(engine), sink_(sink) {}

  // Logs and points are stored (write(2)) when this returns; state changes are durable when `done`
  // is called.
  void Take(AttemptId attempt, uint32_t host, std::vector<ReportFrame> frames,
            std::function<void(Answer)> done);

 private:
  Engine& engine_;
  ReportSink& sink_;
};

// What the agent of a host of the current attempt must be told, if anything.
std::vector<ReplyFrame> CommandsFor(const JobRecord& record, uint32_t host);

}  // namespace athanor
