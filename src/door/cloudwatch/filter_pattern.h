// FilterLogEvents' patterns for plain text: `ERROR timeout` (all), `?ERROR ?WARN` (any),
// `-DEBUG` (none), `"exact phrase"`. Case counts; a term matches anywhere in the message.
// Patterns for JSON ({...}), columns ([...]) and regular expressions (%...%) are refused. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

class FilterPattern {
 public:
  // kInvalid: says what is wrong with it, or not supported here.
  static Result<FilterPattern> Parse(std::string_view text);

  bool Matches(std::string_view message) const;

 private:
  std::vector<std::string> all_;
  std::vector<std::string> any_;
  std::vector<std::string> none_;
};

}  // namespace athanor
