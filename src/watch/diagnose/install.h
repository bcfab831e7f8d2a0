// Which requirement could not be installed, and why, from the installer's output.
#pragma once

#include <string>
#include <string_view>

namespace athanor {

struct InstallProblem {
  std::string requirement;  // "torch==9.9"; empty when the output names none
  std::string why;          // one line; never empty
  std::string hint;         // an edit or a command
  bool disk_full = false;
};

InstallProblem ReadInstallLog(std::string_view log);

}  // namespace athanor
