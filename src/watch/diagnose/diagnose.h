// Why did it end? From the exit record, the stop request and the last lines of the
// log to one Cause: a class of job/causes.h, a short text with the values seen,
// what to type next ("{job}" stands for the job's name; the caller puts it in) and
// the evidence. Pure but for what it asks of the surroundings; takes any bytes for
// a log, and never fails.
//
// A hint is lines: a line that begins with "ath " is a command that works as it
// stands, other lines are shell commands or a sentence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/record.h"
#include "job/spec.h"

namespace athanor {

class Surroundings;

struct EndEvidence {
  std::optional<ExitInfo> exit;     // none: nobody saw it end
  std::optional<StopRequest> stop;  // somebody or something had asked for the end
  bool setup_failed = false;        // the environment could not be built; the script never ran
  std::string setup_tail;           // last lines of the set-up log
  std::string stdout_tail;          // last ~200 lines
  std::string stderr_tail;
  std::string failure_file;  // output/failure, if the script wrote one
  LimitSpec limits;
  EnvironmentSpec environment;
  std::vector<std::string> command;
  std::string code_dir;   // paths below it are shown relative to it
  uint32_t gpus = 0;      // that the job asked for
  bool captured = false;  // a step of athanor.capture() was kept
  const Surroundings* around = nullptr;  // none: only the log is known
};

Cause Diagnose(const EndEvidence& evidence);

// The cause with the job's name for "{job}" in its hint.
Cause ForJob(Cause cause, const std::string& job_name);

}  // namespace athanor
