// The steps that a script captured (athanor.capture, one folder each) are kept with the job when
// the script has ended. Both ways replace what an earlier attempt left, and return whether there is
// a step: one exists when its meta.json does, which is written last.
#pragma once

#include <string>

#include "link/job_files.h"

namespace athanor {

// The folder `name` in the open folder `dir` becomes `to`, which is on the same disk.
Result<bool> MoveCapture(int dir, const std::string& name, const std::string& to);
// Stores its files as entries below `entry`. Only regular files: what a link leads to is not the
// job's.
Result<bool> SendCapture(JobFiles& files, int dir, const std::string& name,
                         const std::string& entry);

}  // namespace athanor
