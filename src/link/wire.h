// What an agent and the server say to each other: batches of frames. A frame is a type, a length
// and a payload; nouns are sent as JSON of job/codec, bulk data (log bytes, points) in binary. An
// unknown frame type is skipped, so that one minor version of difference works. A malformed batch
// is refused completely.
//
// Whose report it is says its token, which is bound to an attempt and a host; frames that name a
// host must name that one.
//
// The agent sends Report batches and reads Reply batches. Reports are sent at
// least once: logs carry offsets, points sequences, and everything else is
// idempotent by attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "job/event.h"
#include "job/log_stream.h"
#include "job/point.h"

namespace athanor {

// The agent is up (again). Sent first on every connection.
struct HelloFrame {
  AttemptId attempt;
  uint64_t pid = 0;
  uint32_t host = 0;
  std::string address = {};  // at which the other hosts reach this one
};
struct LogFrame {
  uint32_t host = 0;
  uint32_t rank = 0;
  LogStream stream = LogStream::kStdout;
  uint64_t offset = 0;
  int64_t wall_ms = 0;
  std::string bytes;
};
struct PointsFrame {
  PointBatch batch;
};
struct UsageFrame {
  int64_t held_ms = 0;
  uint32_t cpu_percent = 0;  // of one CPU: 187 means 1.87 CPUs
  uint64_t memory_bytes = 0;
  uint64_t memory_peak = 0;
};
struct ProgressFrame {
  int64_t done = 0;
  int64_t total = 0;
};
struct StartedFrame {
  int64_t setup_ms = 0;
  std::vector<std::string> off;
  uint64_t supervisor_pid = 0;
};
struct PrepareFailedFrame {
  Cause cause;
};
struct EndedFrame {
  ExitInfo exit;
  Cause cause;
  std::vector<RankEnd> ranks = {};  // in the order of their end
};
struct UploadedFrame {
  std::vector<Output> outputs;
  Cause failure;
  std::string packages;
};
struct NoteFrame {
  Cause cause;
};
// What the attempt starts from; sent before StartedFrame.
struct ResumedFrame {
  std::string checkpoint;  // empty: from the beginning
  std::optional<int64_t> step;
};
struct CheckpointFrame {
  CheckpointInfo checkpoint;
  IntervalAdvice advice;
};
struct FiringFrame {
  Firing firing;
};

using ReportFrame = std::variant<HelloFrame, LogFrame, PointsFrame, UsageFrame, ProgressFrame,
                                 StartedFrame, PrepareFailedFrame, EndedFrame, UploadedFrame,
                                 NoteFrame, ResumedFrame, CheckpointFrame, FiringFrame>;

// How much of a stream the server has; the agent continues from there.
struct LogAckFrame {
  uint32_t host = 0;
  uint32_t rank = 0;
  LogStream stream = LogStream::kStdout;
  uint64_t length = 0;
};
struct StopFrame {
  Cause cause;
  int64_t grace_ms = 120'000;
  bool interrupt = false;  // the machine is taken away; the job continues elsewhere
};
// This attempt was replaced or has ended: end what is left of it and exit.
struct FencedFrame {};

using ReplyFrame = std::variant<LogAckFrame, StopFrame, FencedFrame>;

std::string EncodeReport(const std::vector<ReportFrame>& frames);
Result<std::vector<ReportFrame>> DecodeReport(std::string_view bytes);
std::string EncodeReply(const std::vector<ReplyFrame>& frames);
Result<std::vector<ReplyFrame>> DecodeReply(std::string_view bytes);

}  // namespace athanor
