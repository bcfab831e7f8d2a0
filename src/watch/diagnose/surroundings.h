// What a diagnosis may ask about where the job ran. The base class knows nothing: for a diagnosis
// of a log alone.
#pragma once

#include <string>

namespace athanor {

class Surroundings {
 public:
  virtual ~Surroundings() = default;

  // In the folder from which the source was packaged, as it is now. `path` is relative to it.
  virtual bool InFolder(const std::string& path) const {
    (void)path;
    return false;
  }
  // In the copy of it that the job ran in.
  virtual bool InSource(const std::string& path) const {
    (void)path;
    return false;
  }
  // The beginning of a file in that copy; empty if there is none.
  virtual std::string SourceText(const std::string& path) const {
    (void)path;
    return "";
  }
  // On this machine, by its full path.
  virtual bool OnMachine(const std::string& path) const {
    (void)path;
    return false;
  }
  // The system's Python, if it has this module: "/usr/bin/python3". Empty: it does not.
  virtual std::string SystemPythonWith(const std::string& module) const {
    (void)module;
    return "";
  }
};

}  // namespace athanor
