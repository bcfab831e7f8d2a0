// Follows a job on the screen: its log as it comes, and on a terminal a footer
// with progress, two metrics and what it uses. Plain lines otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cli/client.h"
#include "cli/output.h"

namespace athanor {

struct AttachOptions {
  std::string job;       // id
  std::string name;      // for messages; empty: the id
  std::string query;     // of the stream: "phase=run&tail=10"
  bool json = false;     // NDJSON: one object an event
  bool quiet = false;
  bool split = true;     // stderr of the script goes to stderr
  bool stop_on_interrupt = true;  // Ctrl-C asks the job to stop (else only leaves)
  bool footer = true;
  bool head = false;  // say what it got: GPUs, and limits that the kernel does not hold
  bool once = false;  // only what is there now
  std::function<std::string(std::string_view)> filter;  // what of the log's bytes is shown
};

// A server that dies meanwhile is waited for, and started again where that is ours to do
// (lost_server.h); no byte of the log is shown twice or left out.
// Until the job is over, or (without stop_on_interrupt) Ctrl-C. The final record.
Result<std::optional<Json>> Attach(Client& client, const AttachOptions& options);

// "0,1 (all that no other job reserved)": of a placement, or a state told by the stream.
std::string AutoGpusText(const Json& placement);
// How limits are held where not by the kernel: of an attempt, or a state. Empty: by the kernel.
std::string LimitsText(const Json& attempt);
inline constexpr std::string_view kLimitsMark = "limits: ";  // in an attempt's `off`

// The last lines of `ath run`: how it ended and what to type next.
void PrintEnding(const Json& record, const Terminal& terminal, bool quiet);
// The script's code, 128+n for a signal; from the table when it never started.
int ExitStatusOf(const Json& record);

}  // namespace athanor
