#include "cli/home.h"

#include <unistd.h>

#include <cstdlib>

#include "base/files.h"

namespace athanor {

Home HomeFromEnvironment() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  auto absolute = [](std::string path) {
    if (!path.empty() && path[0] == '/') return path;
    char cwd[4096];
    return ::getcwd(cwd, sizeof cwd) ? JoinPath(cwd, path) : path;
  };
  if (auto home = variable("ATHANOR_HOME"); !home.empty()) return {{absolute(home)}};
  if (auto data = variable("XDG_DATA_HOME"); !data.empty()) return {{absolute(data) + "/athanor"}};
  auto home = variable("HOME");
  return {{(home.empty() ? "/root" : home) + "/.local/share/athanor"}};
}

std::string ProgramPath() {
  char path[4096];
  ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string("athanor");
}

std::string PythonPackageDir() {
  auto beside = JoinPath(DirName(ProgramPath()), "python");
  if (Exists(beside + "/athanor/__init__.py")) return beside;
  auto installed = JoinPath(DirName(DirName(ProgramPath())), "lib/athanor/python");
  return Exists(installed + "/athanor/__init__.py") ? installed : std::string();
}

}  // namespace athanor
