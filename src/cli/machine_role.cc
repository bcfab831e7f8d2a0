#include "cli/machine_role.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/io/files.h"
#include "launch/command/machine_side.h"
#include "run/supervisor/launch_supervisor.h"
#include "serve/home.h"

namespace athanor {
namespace {

constexpr size_t kLongestCall = 64 << 20;  // a plan for each of many hosts

}  // namespace

int AnswerBackend(const std::string& folder) {
  ::umask(077);
  const auto request = ReadAll(STDIN_FILENO, kLongestCall);
  if (!request) {
    std::fprintf(stderr, "athanor: %s\n", request.error().what.c_str());
    return 1;
  }
  MachineSide side;
  side.folder = folder;
  side.program = ProgramPath();
  side.paths.supervisor =
      DefaultSupervisorPath().value_or(JoinPath(DirName(ProgramPath()), "athanor-supervisor"));
  side.paths.python_path = PythonPackageDir();
  std::fputs(AnswerCall(side, *request).c_str(), stdout);
  return 0;
}

}  // namespace athanor
