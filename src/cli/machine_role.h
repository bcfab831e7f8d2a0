// The role of this program on a machine that a back end of another one reaches by a command
// (launch/command): `athanor agent --machine FOLDER`, for one call.
#pragma once

#include <string>

namespace athanor {

// Reads the call from stdin and prints its answer. Returns the exit status of the process.
int AnswerBackend(const std::string& folder);

}  // namespace athanor
