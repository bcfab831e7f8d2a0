// Why something is as it is: a kind that a program can switch on, and text for a person.
#pragma once

#include <string>

namespace athanor {

struct Cause {
  std::string kind;  // "out_of_memory", "user_stop", "python_exception": see job/causes.h
  std::string text;
  std::string hint;    // what to type next
  std::string detail;  // evidence: last frames, the requirement that failed; may be many lines
  bool operator==(const Cause&) const = default;
};

}  // namespace athanor
