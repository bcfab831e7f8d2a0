#include "base/io/unnamed_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

TEST(UnnamedFile, HasNoNameUntilItIsGivenOne) {
  const TestDir dir;
  const auto file = UnnamedFile(dir.path());
  ASSERT_TRUE(file);
  ASSERT_TRUE(WriteAll(file->get(), "bytes").ok());
  EXPECT_EQ(ListDir(dir.path()), std::vector<std::string>());
  const auto folder = OpenDir(dir.path());
  ASSERT_TRUE(NameFile(file->get(), folder->get(), "kept").ok());
  EXPECT_EQ(ReadFile(dir / "kept"), "bytes");
}

// As on file systems without O_TMPFILE; tests/faults/test_no_tmpfile.py has a real one.
TEST(UnnamedFile, IsCopiedWhereItsNameWasRemoved) {
  const TestDir dir;
  UniqueFd file(::open((dir / "gone").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  ASSERT_EQ(::unlink((dir / "gone").c_str()), 0);
  const std::string bytes(3 << 20, 'b');
  ASSERT_TRUE(WriteAll(file.get(), bytes).ok());
  const auto folder = OpenDir(dir.path());
  ASSERT_TRUE(NameFile(file.get(), folder->get(), "kept").ok());
  EXPECT_EQ(ReadFile(dir / "kept"), bytes);
  const auto taken = NameFile(file.get(), folder->get(), "kept");
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kConflict);
}

TEST(UnnamedFile, SaysWhereNoneCanBeMade) {
  const TestDir dir;
  const auto none = UnnamedFile(dir / "missing");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find(dir / "missing"), std::string::npos);
}

}  // namespace
}  // namespace athanor
