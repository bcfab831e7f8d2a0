#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace athanor {
namespace {

constexpr ErrorCode kAll[] = {ErrorCode::kInvalid, ErrorCode::kNotFound,  ErrorCode::kConflict,
                              ErrorCode::kDenied,  ErrorCode::kExhausted, ErrorCode::kUnavailable,
                              ErrorCode::kTimeout, ErrorCode::kCorrupt,   ErrorCode::kCancelled,
                              ErrorCode::kBug};

Result<int> Half(int value) {
  if (value % 2 != 0) return Fail(ErrorCode::kInvalid, "odd", "use an even number");
  return value / 2;
}

Result<int> Quarter(int value) {
  ATHANOR_TRY(const int half, Half(value));
  return Half(half);
}

Status CheckQuarter(int value) {
  ATHANOR_CHECK_OK(Quarter(value));
  return Ok();
}

TEST(Result, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(Quarter(12), 3);
  ASSERT_FALSE(Quarter(6));
  EXPECT_EQ(Quarter(6).error().hint, "use an even number");
  EXPECT_TRUE(CheckQuarter(8).ok());
  EXPECT_EQ(CheckQuarter(2).error().code, ErrorCode::kInvalid);
}

TEST(Result, EveryCodeHasItsOwnRowNameAndExitStatus) {
  std::set<std::string_view> names;
  std::set<int> exits;
  for (const ErrorCode code : kAll) {
    const ErrorRow& row = RowOf(code);
    EXPECT_EQ(row.code, code);
    EXPECT_EQ(ErrorCodeNamed(row.name), code);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(exits.insert(row.exit_status).second);
    EXPECT_GE(row.http_status, 400);
  }
}

TEST(Result, ErrnoDecidesTheCode) {
  EXPECT_EQ(FailErrno("x", ENOSPC).value().code, ErrorCode::kExhausted);
  EXPECT_EQ(FailErrno("x", ENOENT).value().code, ErrorCode::kNotFound);
  EXPECT_EQ(FailErrno("x", EACCES).value().code, ErrorCode::kDenied);
  EXPECT_EQ(FailErrno("x", EIO).value().code, ErrorCode::kUnavailable);
  EXPECT_EQ(FailErrno("x", EIO, ErrorCode::kCorrupt).value().code, ErrorCode::kCorrupt);
  EXPECT_EQ(FailErrno("open /x", ENOENT).value().what, "open /x: No such file or directory");
}

}  // namespace
}  // namespace athanor
