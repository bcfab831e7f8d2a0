// Why did it end? From the exit record, the stop request and the last lines of the log to one
// Cause: a kind of job/causes.h, a short text with the values seen, what to type next (the caller
// replaces "{job}" by the job's name) and the evidence. Pure, except for what it asks the
// surroundings; accepts any bytes as a log, and never fails.
//
// A hint is lines: a line that begins with "ath " is a command that works without changes, other
// lines are shell commands or a sentence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/record.h"
#include "job/spec.h"

namespace athanor {

class Surroundings;

struct EndEvidence {
  std::optional<ExitInfo> exit;     // none: its end was not seen
  std::optional<StopRequest> stop;  // a person or program had requested the end
  bool setup_failed = false;        // the environment could not be built; the script never ran
  std::string setup_tail;           // last lines of the set-up log
  std::string stdout_tail;          // last ~200 lines
  std::string stderr_tail;
  std::string failure_file;  // output/failure, if the script wrote one
  LimitSpec limits;
  EnvironmentSpec environment;
  std::vector<std::string> command;
  std::string code_dir;                  // paths below it are shown relative to it
  uint32_t gpus = 0;                     // that the job asked for
  bool captured = false;                 // a step of athanor.capture() was stored
  const Surroundings* around = nullptr;  // none: only the log is known
};

Cause Diagnose(const EndEvidence& evidence);

// The cause with "{job}" in its hint replaced by the job's name.
Cause ForJob(Cause cause, const std::string& job_name);

}  // namespace athanor
