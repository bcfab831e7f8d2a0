// Result<T> and Status carry a value or an Error; both are nodiscard, and no exception leaves a
// room. The code of an Error decides behaviour (HTTP status, exit status, retry: see ErrorTable);
// the texts are for a person: what happened, why (the value seen), and what to type next.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace athanor {

enum class ErrorCode {
  kInvalid,  // the caller's input is wrong; retrying will not help
  kNotFound,
  kConflict,  // the current state forbids it (same key, other payload)
  kDenied,
  kExhausted,    // no room now: quota, disk, memory, descriptors
  kUnavailable,  // the other side did not answer; nothing is known to have happened
  kTimeout,
  kCorrupt,  // stored bytes are not what was written
  kCancelled,
  kBug,
};

struct Error {
  ErrorCode code = ErrorCode::kBug;
  std::string what = {};  // one line: what could not be done
  std::string hint =
      {};  // one to three lines, each a command or an edit; may be empty below the door
  std::string why = {};  // one line with the value seen; may be empty
  std::string id = {};  // stable name such as "ATH-S0104", explained by `ath explain`; may be empty
  std::string where = {};  // file:line:column, or the key in a document that was sent; may be empty

  // What is said beyond the hint is added by name:
  //
  //   return Fail(Error{ErrorCode::kConflict, "the job is not over", "ath stop " + name}
  //                   .Why("it is Running")
  //                   .Id("ATH-R0005"));
  Error Why(std::string text) &&;
  Error Id(std::string text) &&;
  Error Where(std::string text) &&;

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;

struct Unit {
  bool operator==(const Unit&) const = default;
};

class [[nodiscard]] Status : public tl::expected<Unit, Error> {
 public:
  Status() : tl::expected<Unit, Error>(Unit{}) {}
  Status(tl::unexpected<Error> error)  // NOLINT(google-explicit-constructor)
      : tl::expected<Unit, Error>(std::move(error)) {}
  bool ok() const { return has_value(); }
};

inline Status Ok() { return {}; }

// return Fail(ErrorCode::kInvalid, "no such type", "ath types");
tl::unexpected<Error> Fail(ErrorCode code, std::string what, std::string hint = {});
tl::unexpected<Error> Fail(Error error);
// The same from errno: "open /x: No space left on device"; ENOSPC and EDQUOT are kExhausted, ENOENT
// kNotFound, EACCES and EPERM kDenied, all others `otherwise`.
tl::unexpected<Error> FailErrno(std::string what, int error_number,
                                ErrorCode otherwise = ErrorCode::kUnavailable);

// One table maps a code to its effects for callers.
struct ErrorRow {
  ErrorCode code;
  std::string_view name;  // "invalid"
  int http_status;
  int exit_status;
  bool retry;
};
const ErrorRow& RowOf(ErrorCode code);
// kBug for a name that no row has.
ErrorCode ErrorCodeNamed(std::string_view name);

}  // namespace athanor

// ATHANOR_TRY(auto x, Compute());   leaves the function with the error, or binds the value.
#define ATHANOR_CONCAT_(a, b) a##b
#define ATHANOR_CONCAT(a, b) ATHANOR_CONCAT_(a, b)
#define ATHANOR_TRY(declaration, expression) \
  ATHANOR_TRY_(ATHANOR_CONCAT(athanor_try_, __LINE__), declaration, expression)
#define ATHANOR_TRY_(temporary, declaration, expression)                 \
  auto temporary = (expression);                                         \
  if (!temporary) return ::tl::unexpected(std::move(temporary).error()); \
  declaration = std::move(*temporary)
// ATHANOR_CHECK_OK(DoIt());   the same for a Status.
#define ATHANOR_CHECK_OK(expression) \
  ATHANOR_CHECK_OK_(ATHANOR_CONCAT(athanor_ok_, __LINE__), expression)
#define ATHANOR_CHECK_OK_(temporary, expression) \
  if (auto temporary = (expression); !temporary) \
  return ::tl::unexpected(std::move(temporary).error())
