// Follows a job on the screen: its log as it arrives, and on a terminal a footer with progress, two
// metrics and usage. Plain lines otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json.h"
#include "cli/client.h"
#include "cli/screen/output.h"

namespace athanor {

struct AttachOptions {
  std::string job;    // id
  std::string name;   // for messages; empty: the id
  std::string query;  // of the stream: "phase=run&tail=10"
  bool json = false;  // NDJSON: one object per event
  bool quiet = false;
  bool split = true;              // stderr of the script goes to stderr
  bool stop_on_interrupt = true;  // Ctrl-C asks the job to stop (otherwise it only leaves)
  bool footer = true;
  bool head = false;      // print what it got: GPUs, and limits that the kernel does not enforce
  bool once = false;      // only what is there now
  bool one_rank = false;  // the query leaves at most one rank of each host
  bool one_host = false;  // ... or one host
  bool tags = true;       // each line has its rank in front if there are several
  std::function<std::string(std::string_view)> filter;  // which bytes of the log are shown
};

// If the server dies meanwhile, waits for it, and starts it again if we may (lost_server.h); no
// byte of the log is shown twice or lost. Until the job has ended, or (without stop_on_interrupt)
// Ctrl-C. Returns the final record.
Result<std::optional<Json>> Attach(Client& client, const AttachOptions& options);

// "0,1 (all that no other job reserved)": for a placement, or a state sent by the stream.
std::string AutoGpusText(const Json& placement);
// How limits are enforced if not by the kernel: for an attempt, or a state. Empty: by the kernel.
std::string LimitsText(const Json& attempt);
inline constexpr std::string_view kLimitsMark = "limits: ";  // in an attempt's `off`

// The last lines of `ath run`: how it ended and what to type next.
void PrintEnding(const Json& record, const Terminal& terminal, bool quiet);
// The script's code, 128+n for a signal; from the table if it never started.
int ExitStatusOf(const Json& record);

}  // namespace athanor
