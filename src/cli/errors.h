// All stable error codes in one place: causes of jobs, errors of the job file, and
// those of the server and the command line, for `ath explain` and docs/errors.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

struct Explained {
  std::string code;
  std::string title;
  std::string text;
};

std::optional<Explained> ExplainCode(std::string_view code);
std::vector<Explained> AllCodes();  // in order
// docs/errors.md, complete; a test compares it with the file.
std::string ErrorsPage();

}  // namespace athanor
