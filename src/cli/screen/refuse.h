// How a verb ends with an error: prints it and returns the exit status.
#pragma once

#include "base/result.h"
#include "cli/screen/output.h"

namespace athanor {

inline int Refuse(const Error& error, bool json) {
  PrintError(error, json);
  return RowOf(error.code).exit_status;
}

}  // namespace athanor
