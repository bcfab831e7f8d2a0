#include "base/result.h"

#include <cerrno>
#include <cstring>
#include <iterator>

namespace athanor {
namespace {

// Exit statuses are small numbers, which leaves room for the script's own codes; JSON output tells
// the two apart.
constexpr ErrorRow kRows[] = {
    {ErrorCode::kInvalid, "invalid", 400, 2, false},
    {ErrorCode::kNotFound, "not_found", 404, 3, false},
    {ErrorCode::kConflict, "conflict", 409, 4, false},
    {ErrorCode::kDenied, "denied", 403, 6, false},
    {ErrorCode::kExhausted, "exhausted", 507, 8, true},
    {ErrorCode::kUnavailable, "unavailable", 503, 5, true},
    {ErrorCode::kTimeout, "timeout", 504, 7, true},
    {ErrorCode::kCorrupt, "corrupt", 500, 9, false},
    {ErrorCode::kCancelled, "cancelled", 499, 12, false},
    {ErrorCode::kBug, "bug", 500, 70, false},
};

}  // namespace

Error Error::Why(std::string text) && {
  why = std::move(text);
  return std::move(*this);
}

Error Error::Id(std::string text) && {
  id = std::move(text);
  return std::move(*this);
}

Error Error::Where(std::string text) && {
  where = std::move(text);
  return std::move(*this);
}

tl::unexpected<Error> Fail(ErrorCode code, std::string what, std::string hint) {
  return tl::unexpected(Error{code, std::move(what), std::move(hint)});
}

tl::unexpected<Error> Fail(Error error) { return tl::unexpected(std::move(error)); }

tl::unexpected<Error> FailErrno(std::string what, int error_number, ErrorCode otherwise) {
  Error error;
  error.code = otherwise;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      error.code = ErrorCode::kExhausted;
      break;
    case ENOENT:
      error.code = ErrorCode::kNotFound;
      break;
    case EACCES:
    case EPERM:
      error.code = ErrorCode::kDenied;
      break;
    default:
      break;
  }
  error.what = std::move(what) + ": " + std::strerror(error_number);
  return tl::unexpected(std::move(error));
}

const ErrorRow& RowOf(ErrorCode code) {
  for (const auto& row : kRows) {
    if (row.code == code) return row;
  }
  return *std::rbegin(kRows);
}

ErrorCode ErrorCodeNamed(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.code;
  }
  return ErrorCode::kBug;
}

}  // namespace athanor
