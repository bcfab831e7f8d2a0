// The script's view of the machine: private mounts, hidden paths, binds, its
// own /proc and its host name. Called once, before any rank is started.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "run/supervisor/supervisor_plan.h"

namespace athanor::supervisor {

struct Namespaces {
  bool user = false;
  bool pid = false;
  bool mount = false;
  bool uts = false;

  // "user,pid,mount,uts", or "none". False for anything else.
  static bool Parse(std::string_view text, Namespaces* namespaces);
};

// Does what `plan` asks as far as `namespaces` allow. What is missing is added to `off`, one phrase
// each; a required mount that fails is an error, and so is an existing path that cannot be hidden.
// With a PID namespace, a script of root cannot write the kernel's settings in /proc/sys.
//
// A missing mount target is never created on the host: its nearest existing folder is covered by a
// small tmpfs that shows the same entries plus the new one. Only the root folder itself cannot be
// covered; there the target is created.
Status EnterView(const SupervisorPlan& plan, const Namespaces& namespaces,
                 std::vector<std::string>* off);

}  // namespace athanor::supervisor
