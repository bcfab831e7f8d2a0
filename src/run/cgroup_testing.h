// For tests: a machine's /proc and /sys/fs/cgroup as plain files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "base/files.h"

namespace athanor {

class FakeMachine {
 public:
  FakeMachine() {
    char name[] = "/tmp/athanor-cgroup-test-XXXXXX";
    root = ::mkdtemp(name);
  }
  ~FakeMachine() { (void)RemoveTree(root); }

  void Put(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(MakeDirs(DirName(root + path)).ok());
    ASSERT_TRUE(ReplaceFile(root + path, text).ok());
  }
  std::string Get(const std::string& path) const { return ReadFile(root + path).value_or("(none)"); }

  std::string root;
};

}  // namespace athanor
