// The agent runs one host of one attempt: source, environment, data, script, outputs; and sends
// what happens to the server. It can be killed at any moment: the next agent started on the same
// folder finds the supervisor and continues. It also continues while the server is away. If its
// folder is gone, it ends, and its script with it.
#pragma once

#include <string>

#include "base/result.h"

namespace athanor {

// Runs until the attempt is over and acknowledged, or fenced off. Returns the exit status of the
// process: 0, also if another agent is already responsible for it.
int RunAgent(const std::string& attempt_dir);

// An agent started before its attempt is known: waits on descriptor 3 for the attempt's folder,
// writes it over `placeholder`, which has the same length, and runs it. 0 also if the folder of
// attempts is gone, or the other side closes first; a server that was killed is then started again
// (server_guard.h).
int RunAgentWhenAsked(char* placeholder);

// Ends what is left of an attempt, without grace; prints "ended" once nothing runs.
int EndAttempt(const std::string& attempt_dir);

}  // namespace athanor
