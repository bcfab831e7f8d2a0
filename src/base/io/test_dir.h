// For tests only: a new folder that is removed with its object.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/io/files.h"

namespace athanor {

class TestDir {
 public:
  TestDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = JoinPath(base == nullptr ? "/tmp" : base, "athanor-test-XXXXXX");
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TestDir() { (void)RemoveTree(path_).ok(); }
  TestDir(const TestDir&) = delete;
  TestDir& operator=(const TestDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return JoinPath(path_, name); }

 private:
  std::string path_;
};

}  // namespace athanor
