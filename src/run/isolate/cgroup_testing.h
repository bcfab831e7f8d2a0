// For tests: a machine's /proc and /sys/fs/cgroup as plain files.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {

class FakeMachine {
 public:
  void Put(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(MakeDirs(DirName(root + path)).ok());
    ASSERT_TRUE(ReplaceFile(root + path, text).ok());
  }
  std::string Get(const std::string& path) const {
    return ReadFile(root + path).value_or("(none)");
  }

  const TestDir dir;
  const std::string root = dir.path();
};

}  // namespace athanor
