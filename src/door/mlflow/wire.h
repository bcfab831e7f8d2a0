// How MLflow calls are sent: fields in a query or a JSON body, errors as {"error_code", "message"}.
// Below this, calls are functions from a Fields to an Answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"
#include "door/doors.h"
#include "record/runs/run_rows.h"

namespace athanor {

class BodySource;

// An Error whose `id` is MLflow's name of it and whose `what` is its message.
tl::unexpected<Error> MlflowFail(std::string_view error_code, std::string message);
tl::unexpected<Error> InvalidParameter(std::string message);
// "Invalid value <json> for parameter 'p' supplied: why"
tl::unexpected<Error> InvalidValue(std::string_view parameter, const Json& value,
                                   std::string_view why);
// For a required parameter that is missing.
tl::unexpected<Error> MissingValue(std::string_view parameter);
Response MlflowError(const Error& error);

// The fields of a request, from query or body. Unknown ones are ignored, as MLflow does.
class Fields {
 public:
  static Result<Fields> Of(const Request& request);
  // With `body` instead of the request's own.
  static Result<Fields> Of(const Request& request, std::string_view body);
  explicit Fields(Json json);
  ~Fields();
  Fields(Fields&&) noexcept;
  Fields& operator=(Fields&&) noexcept;

  // The empty string if it is absent. kInvalid if it is not a string.
  Result<std::string> Text(std::string_view name) const;
  // Refused if it is absent or empty.
  Result<std::string> Needed(std::string_view name) const;
  // A number, or one written as a string.
  Result<std::optional<int64_t>> Int(std::string_view name) const;
  Result<int64_t> NeededInt(std::string_view name) const;
  bool Bool(std::string_view name) const;
  Result<std::vector<std::string>> Texts(std::string_view name) const;
  // run_id, or run_uuid; kNotFound if no run can have it.
  Result<JobId> Run() const;
  Result<std::vector<std::pair<std::string, std::string>>> Pairs(std::string_view name) const;

  const Json* Find(std::string_view name) const;  // null: absent
  const Json& json() const { return *json_; }

 private:
  std::unique_ptr<Json> json_;
};

Result<std::string> TextOf(const Json& value, std::string_view parameter);
Result<int64_t> IntOf(const Json& value, std::string_view parameter);
// A number, or "NaN", "Infinity", "-Infinity".
Result<double> DoubleOf(const Json& value, std::string_view parameter);

// The answer to a call: at once or, if there is something to store, when that is durable.
struct Answer {
  std::string body = "{}";
  RunBatch batch;
  // For a change that is too long for one turn of the loop: returns what to store next, until it
  // returns false.
  std::function<bool(RunBatch& next)> more;
  std::shared_ptr<BodySource> source = nullptr;  // of a slow read: makes the body, piece by piece
};

// A page of a list, by position.
struct PageOf {
  size_t offset = 0;
  size_t limit = 0;
};
// max_results, or `usual`. kInvalid: it is below 1 or above `most`.
Result<size_t> ReadLimit(const Fields& fields, size_t usual, size_t most);
// kInvalid: max_results is below 1 or above `most`, or the token is not ours.
Result<PageOf> ReadPage(const Fields& fields, size_t usual, size_t most);
std::string PageToken(size_t offset);

}  // namespace athanor
