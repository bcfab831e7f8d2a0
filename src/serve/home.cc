#include "serve/home.h"

#include <unistd.h>

#include <cstdlib>

#include "base/io/files.h"
#include "link/server_record.h"

namespace athanor {

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string Absolute(const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  char cwd[4096];
  return ::getcwd(cwd, sizeof cwd) ? JoinPath(cwd, path) : path;
}

}  // namespace

std::string UsualHome() {
  if (auto data = Variable("XDG_DATA_HOME"); !data.empty()) return Absolute(data) + "/athanor";
  auto home = Variable("HOME");
  return (home.empty() ? "/root" : home) + "/.local/share/athanor";
}

Home HomeFromEnvironment() {
  if (auto home = Variable("ATHANOR_HOME"); !home.empty()) return {{Absolute(home)}};
  return {{UsualHome()}};
}

std::string ProgramPath() { return ThisProgram(); }

std::string PythonPackageDir() {
  auto beside = JoinPath(DirName(ProgramPath()), "python");
  if (Exists(beside + "/athanor/__init__.py")) return beside;
  auto installed = JoinPath(DirName(DirName(ProgramPath())), "lib/athanor/python");
  return Exists(installed + "/athanor/__init__.py") ? installed : std::string();
}

}  // namespace athanor
