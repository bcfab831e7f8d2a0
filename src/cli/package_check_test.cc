#include "cli/package_check.h"

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

class PackageCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"bin", "lib/athanor"}) ASSERT_TRUE(MakeDirs(dir_ / folder).ok());
    Put("bin/ath", "program");
    Put("lib/athanor/sbom", "list");
    Put("lib/athanor/manifest.sha256",
        Sha256Hex("program") + "  bin/ath\n" + Sha256Hex("list") + "  lib/athanor/sbom\n");
  }

  void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(dir_ / path, text).ok());
  }

  Result<PackageCheck> Check() { return CheckPackage(dir_ / "bin/ath"); }

  TestDir dir_;
};

TEST_F(PackageCheckTest, WhatIsAsPackagedIsFound) {
  const auto check = Check();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->files, 2u);
  EXPECT_TRUE(check->missing.empty());
  EXPECT_TRUE(check->changed.empty());
}

TEST_F(PackageCheckTest, AChangedAndAMissingFileAreNamed) {
  Put("bin/ath", "another");
  ASSERT_TRUE(RemoveTree(dir_ / "lib/athanor/sbom").ok());
  const auto check = Check();
  ASSERT_TRUE(check);
  EXPECT_EQ(check->changed, std::vector<std::string>{"bin/ath"});
  EXPECT_EQ(check->missing, std::vector<std::string>{"lib/athanor/sbom"});
}

TEST_F(PackageCheckTest, ABuildFolderHasNothingToCompareWith) {
  ASSERT_TRUE(RemoveTree(dir_ / "lib/athanor/manifest.sha256").ok());
  EXPECT_EQ(Check().error().code, ErrorCode::kNotFound);
}

TEST_F(PackageCheckTest, AListThatIsNoListIsRefused) {
  Put("lib/athanor/manifest.sha256", "bin/ath\n");
  EXPECT_EQ(Check().error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace athanor
