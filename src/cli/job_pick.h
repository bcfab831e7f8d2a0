// Many jobs at once, chosen on the command line: --state, --tag, --name and so on, the same for ps,
// stop and rm; they are shown and confirmed before anything happens to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"

namespace athanor {

struct JobPick {
  bool all = false;
  std::string state;
  std::string experiment;
  std::string name;               // a pattern of the shell's
  std::string older;              // an age
  std::vector<std::string> tags;  // KEY=VALUE or KEY

  bool filters() const {
    return !state.empty() || !experiment.empty() || !name.empty() || !older.empty() ||
           !tags.empty();
  }
  bool chooses() const { return all || filters(); }
};

// For GET /api/v1/jobs: "&state=failed&tag=team%3Dvision".
std::string QueryOf(const JobPick& pick);
// To be typed again: " --state failed --tag team=vision".
std::string FlagsOf(const JobPick& pick);
// `ath stop 'lr-*'` means --name 'lr-*'. Leaves plain names as they are.
void TakePattern(std::vector<std::string>& jobs, JobPick& pick);

// The first of `rows` (of GET /api/v1/jobs), one per line, and how many more there are.
std::string PreviewText(const Json& rows, uint64_t matched);

// Shows `preview` and asks `question` on a terminal: whether the answer was yes. kInvalid without a
// terminal: `command` needs --yes there.
Result<bool> IsConfirmed(const std::string& preview, const std::string& question,
                         const std::string& command);

}  // namespace athanor
