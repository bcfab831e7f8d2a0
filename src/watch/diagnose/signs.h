// The table of well-known failures: by which words of an exception or of a log line
// they are told, what class they are, and what to do about each. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace athanor {

struct SignFound {
  std::string_view kind;  // of job/causes.h
  std::string what;       // in front of the program's own words; may be empty
  std::string hint;       // "{job}" stands for the job's name
};

// An exception: the last part of its type ("OSError") and its message, all lines.
std::optional<SignFound> SignOfError(std::string_view type, std::string_view message);
// A line of a log. `status`: with which the script ended; some words count only with one.
std::optional<SignFound> SignOfLine(std::string_view line, int status);

// The error's own words for an environment variable that is not set; empty: it is about none.
std::string MissingVariableIn(std::string_view words);

}  // namespace athanor
