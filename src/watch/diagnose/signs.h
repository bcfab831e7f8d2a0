// The table of well-known failures: the texts of exceptions or log lines that identify them, their
// kind, and what to do about each. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "job/cause_kind.h"

namespace athanor {

struct SignFound {
  CauseKind kind;
  std::string what;  // before the program's own message; may be empty
  std::string hint;  // "{job}" stands for the job's name
};

// An exception: the last part of its type ("OSError") and its message, all lines.
std::optional<SignFound> SignOfError(std::string_view type, std::string_view message);
// A line of a log. `status`: the exit status of the script; some texts count only with a certain
// one.
std::optional<SignFound> SignOfLine(std::string_view line, int status);

// The error's own message for an environment variable that is not set; empty: it is about none.
std::string MissingVariableIn(std::string_view words);

}  // namespace athanor
