#include "net/http/http_types.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

void Headers::Add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::Set(std::string_view name, std::string value) {
  std::erase_if(fields_, [&](const Field& field) { return SameName(field.first, name); });
  fields_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::Get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (SameName(key, name)) return value;
  }
  return {};
}

bool Headers::Has(std::string_view name) const { return Count(name) > 0; }

size_t Headers::Count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(fields_.begin(), fields_.end(), [&](const Field& field) {
    return SameName(field.first, name);
  }));
}

bool Headers::HasToken(std::string_view name, std::string_view token) const {
  for (const auto& [key, value] : fields_) {
    if (!SameName(key, name)) continue;
    for (const auto& part : Split(value, ',')) {
      if (SameName(Trim(part), token)) return true;
    }
  }
  return false;
}

std::optional<std::string> Request::Query(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Response Response::Json(int status, std::string body) {
  return Response{status, {{"Content-Type", "application/json"}}, std::move(body)};
}

Response Response::Text(int status, std::string body) {
  return Response{status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
}

Response ErrorResponse(const Error& error) {
  return ErrorResponse(RowOf(error.code).http_status, error);
}

Response ErrorResponse(int status, const Error& error) {
  nlohmann::ordered_json body;
  body["code"] = RowOf(error.code).name;
  body["what"] = error.what;
  const std::pair<const char*, const std::string*> optional[] = {
      {"why", &error.why}, {"hint", &error.hint}, {"id", &error.id}, {"where", &error.where}};
  for (const auto& [name, text] : optional) {
    if (!text->empty()) body[name] = *text;
  }
  nlohmann::ordered_json document;
  document["error"] = std::move(body);
  return Response::Json(status, DumpJson(document) + "\n");
}

std::string_view StatusText(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

std::optional<std::vector<std::pair<std::string, std::string>>> ParseQuery(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (text.empty()) return pairs;
  for (const auto& part : Split(text, '&')) {
    if (part.empty()) continue;
    std::string spaced = part;
    std::replace(spaced.begin(), spaced.end(), '+', ' ');
    const size_t equals = spaced.find('=');
    auto name = UrlDecode(std::string_view(spaced).substr(0, equals));
    auto value = equals == std::string::npos
                     ? std::optional<std::string>("")
                     : UrlDecode(std::string_view(spaced).substr(equals + 1));
    if (!name || !value) return std::nullopt;
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

}  // namespace athanor
