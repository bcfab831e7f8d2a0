#include "door/mlflow/wire.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kSeeDocs =
    " See the API docs for more information about request parameters.";
constexpr size_t kMostEcho = 200;  // bytes of a wrong value that are repeated

struct CodeRow {
  std::string_view name;
  int status;
};
constexpr CodeRow kCodes[] = {
    {"INVALID_PARAMETER_VALUE", 400}, {"BAD_REQUEST", 400},
    {"RESOURCE_ALREADY_EXISTS", 400}, {"PERMISSION_DENIED", 403},
    {"RESOURCE_DOES_NOT_EXIST", 404}, {"NOT_FOUND", 404},
    {"ENDPOINT_NOT_FOUND", 404},      {"RESOURCE_EXHAUSTED", 429},
    {"INTERNAL_ERROR", 500},          {"NOT_IMPLEMENTED", 501},
    {"TEMPORARILY_UNAVAILABLE", 503}, {"DEADLINE_EXCEEDED", 504},
    {"REQUEST_TOO_LARGE", 413},
};

std::string_view CodeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "INVALID_PARAMETER_VALUE";
    case ErrorCode::kNotFound:
      return "RESOURCE_DOES_NOT_EXIST";
    case ErrorCode::kConflict:
      return "RESOURCE_ALREADY_EXISTS";
    case ErrorCode::kDenied:
      return "PERMISSION_DENIED";
    case ErrorCode::kExhausted:
    case ErrorCode::kUnavailable:
      return "TEMPORARILY_UNAVAILABLE";
    case ErrorCode::kTimeout:
      return "DEADLINE_EXCEEDED";
    case ErrorCode::kCorrupt:
    case ErrorCode::kCancelled:
    case ErrorCode::kBug:
      return "INTERNAL_ERROR";
  }
  return "INTERNAL_ERROR";
}

std::string Echo(const Json& value) {
  std::string text = DumpJson(value);
  if (text.size() > kMostEcho) {
    text.resize(kMostEcho);
    while (!text.empty() && !IsUtf8(text)) text.pop_back();
    text += "...";
  }
  return text;
}

// The name of a value's type as a Python programmer knows it.
std::string_view PythonType(const Json& value) {
  if (value.is_string()) return "str";
  if (value.is_boolean()) return "bool";
  if (value.is_number_float()) return "float";
  if (value.is_number()) return "int";
  if (value.is_array()) return "list";
  return value.is_null() ? "NoneType" : "dict";
}

tl::unexpected<Error> WrongType(std::string_view parameter, const Json& value) {
  return InvalidParameter(
      fmt::format("Invalid value {} for parameter '{}' supplied:  Hint: Value was of type '{}'.{}",
                  Echo(value), parameter, PythonType(value), kSeeDocs));
}

// A body must say that it is JSON: a page of another origin cannot send that unasked.
Status CheckContentType(const Request& request) {
  std::string type(request.headers.Get("Content-Type"));
  type = ToLower(Trim(type.substr(0, type.find(';'))));
  if (type == "application/json" || (request.body.empty() && type.empty())) return Ok();
  return InvalidParameter("Bad Request. Content-Type must be one of ['application/json'].");
}

Json FromQuery(const Request& request) {
  Json json = Json::object();
  for (const auto& [key, value] : request.query) {
    const std::string name = EndsWith(key, "[]") ? key.substr(0, key.size() - 2) : key;
    auto at = json.find(name);
    if (at == json.end()) {
      json[name] = value;
    } else if (at->is_array()) {
      at->push_back(value);
    } else {
      *at = Json::array({*at, value});
    }
  }
  return json;
}

}  // namespace

tl::unexpected<Error> MlflowFail(std::string_view error_code, std::string message) {
  return Fail(Error{ErrorCode::kInvalid, std::move(message)}.Id(std::string(error_code)));
}

tl::unexpected<Error> InvalidParameter(std::string message) {
  return MlflowFail("INVALID_PARAMETER_VALUE", std::move(message));
}

tl::unexpected<Error> InvalidValue(std::string_view parameter, const Json& value,
                                   std::string_view why) {
  return InvalidParameter(fmt::format("Invalid value {} for parameter '{}' supplied: {}{}",
                                      Echo(value), parameter, why, kSeeDocs));
}

tl::unexpected<Error> MissingValue(std::string_view parameter) {
  return InvalidParameter(
      fmt::format("Missing value for required parameter '{}'.{}", parameter, kSeeDocs));
}

Response MlflowError(const Error& error) {
  std::string_view name = CodeFor(error.code);
  int status = 500;
  for (const auto& row : kCodes) {
    if (row.name == error.id) name = row.name;
  }
  for (const auto& row : kCodes) {
    if (row.name == name) status = row.status;
  }
  Json body = Json::object();
  body["error_code"] = std::string(name);
  body["message"] = error.why.empty() ? error.what : error.what + ": " + error.why;
  Response response = Response::Json(status, DumpJson(body));
  response.headers.Set("X-Content-Type-Options", "nosniff");
  return response;
}

Fields::Fields(Json json) : json_(std::make_unique<Json>(std::move(json))) {}
Fields::~Fields() = default;
Fields::Fields(Fields&&) noexcept = default;
Fields& Fields::operator=(Fields&&) noexcept = default;

Result<Fields> Fields::Of(const Request& request) { return Of(request, request.body); }

Result<Fields> Fields::Of(const Request& request, std::string_view body) {
  if (request.method == "GET" || request.method == "HEAD") return Fields(FromQuery(request));
  ATHANOR_CHECK_OK(CheckContentType(request));
  if (Trim(body).empty()) return Fields(Json::object());
  auto json = ParseJson(body);
  // Old clients send the document as a JSON string.
  if (json && json->is_string()) json = ParseJson(json->get<std::string>());
  if (!json) {
    return MlflowFail("BAD_REQUEST",
                      "Malformed request body: " + json.error().what + ": " + json.error().why);
  }
  if (json->is_null()) return Fields(Json::object());
  if (!json->is_object()) {
    return MlflowFail("BAD_REQUEST", "Malformed request body: it is not a JSON object");
  }
  return Fields(std::move(*json));
}

const Json* Fields::Find(std::string_view name) const {
  const auto at = json_->find(std::string(name));
  return at == json_->end() || at->is_null() ? nullptr : &*at;
}

Result<std::string> TextOf(const Json& value, std::string_view parameter) {
  if (!value.is_string()) return WrongType(parameter, value);
  return value.get<std::string>();
}

Result<int64_t> IntOf(const Json& value, std::string_view parameter) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return static_cast<int64_t>(number);
    }
  } else if (value.is_number_integer()) {
    return value.get<int64_t>();
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) < 9.2e18) {
      return static_cast<int64_t>(number);
    }
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t number = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end && !text.empty()) return number;
  }
  return WrongType(parameter, value);
}

Result<double> DoubleOf(const Json& value, std::string_view parameter) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    double number = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end && !text.empty()) return number;
  }
  return WrongType(parameter, value);
}

Result<std::string> Fields::Text(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::string();
  return TextOf(*value, name);
}

Result<std::string> Fields::Needed(std::string_view name) const {
  ATHANOR_TRY(std::string text, Text(name));
  if (text.empty()) return MissingValue(name);
  return text;
}

Result<std::optional<int64_t>> Fields::Int(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<int64_t>();
  ATHANOR_TRY(const int64_t number, IntOf(*value, name));
  return std::optional<int64_t>(number);
}

Result<int64_t> Fields::NeededInt(std::string_view name) const {
  ATHANOR_TRY(const auto number, Int(name));
  if (!number) return MissingValue(name);
  return *number;
}

bool Fields::Bool(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  return value->is_string() && ToLower(value->get<std::string>()) == "true";
}

Result<std::vector<std::string>> Fields::Texts(std::string_view name) const {
  std::vector<std::string> texts;
  const Json* value = Find(name);
  if (value == nullptr) return texts;
  if (value->is_string()) return std::vector{value->get<std::string>()};
  if (!value->is_array()) return WrongType(name, *value);
  for (const auto& item : *value) {
    ATHANOR_TRY(auto text, TextOf(item, name));
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<JobId> Fields::Run() const {
  ATHANOR_TRY(std::string text, Text("run_id"));
  if (text.empty()) {
    ATHANOR_TRY(text, Text("run_uuid"));
  }
  if (text.empty()) return MissingValue("run_id");
  const auto id = JobId::Parse(text);
  if (id) return *id;
  return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                    fmt::format("Run with id={} not found", Printable(text.substr(0, kMostEcho))));
}

Result<std::vector<std::pair<std::string, std::string>>> Fields::Pairs(
    std::string_view name) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  const Json* value = Find(name);
  if (value == nullptr) return pairs;
  if (!value->is_array()) return WrongType(name, *value);
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    if (!item.is_object()) return WrongType(fmt::format("{}[{}]", name, i), item);
    if (!item.contains("key")) return MissingValue(fmt::format("{}[{}].key", name, i));
    ATHANOR_TRY(auto key, TextOf(item["key"], fmt::format("{}[{}].key", name, i)));
    std::string text;
    if (item.contains("value") && !item["value"].is_null()) {
      ATHANOR_TRY(text, TextOf(item["value"], fmt::format("{}[{}].value", name, i)));
    }
    pairs.emplace_back(std::move(key), std::move(text));
  }
  return pairs;
}

Result<size_t> ReadLimit(const Fields& fields, size_t usual, size_t most) {
  ATHANOR_TRY(const auto asked, fields.Int("max_results"));
  if (!asked) return usual;
  if (*asked < 1 || static_cast<uint64_t>(*asked) > most) {
    return InvalidValue("max_results", *asked,
                        fmt::format("It must be at least 1 and at most {}.", most));
  }
  return static_cast<size_t>(*asked);
}

Result<PageOf> ReadPage(const Fields& fields, size_t usual, size_t most) {
  PageOf page;
  ATHANOR_TRY(page.limit, ReadLimit(fields, usual, most));
  ATHANOR_TRY(const std::string token, fields.Text("page_token"));
  if (token.empty()) return page;
  const auto text = FromBase64(token);
  const auto json = text ? ParseJson(*text) : Result<Json>(Fail(ErrorCode::kInvalid, ""));
  if (!json || !json->is_object() || !json->contains("offset") ||
      !(*json)["offset"].is_number_unsigned()) {
    return InvalidParameter("Invalid page token: " + Printable(token.substr(0, kMostEcho)));
  }
  page.offset = (*json)["offset"].get<size_t>();
  return page;
}

std::string PageToken(size_t offset) { return Base64(fmt::format("{{\"offset\": {}}}", offset)); }

}  // namespace athanor
