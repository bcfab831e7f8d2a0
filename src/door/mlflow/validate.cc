#include "door/mlflow/validate.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/wire.h"

namespace athanor {
namespace {

constexpr int kMostEscapes = 8;  // an escape of an escape of ...

bool IsKeyByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || byte >= 0x80 ||
         std::string_view("_-. :/").find(c) != std::string_view::npos;
}

// As posixpath.normpath would leave it.
bool IsNormalPath(std::string_view path) {
  if (path.empty() || path.front() == '/' || path == ".") return path.empty();
  if (path.find('/') == std::string_view::npos && path.front() != '.') return true;  // most are
  for (const auto& part : Split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

}  // namespace

size_t Characters(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string CutTo(std::string_view text, size_t most_chars) {
  if (Characters(text) <= most_chars) return std::string(text);
  size_t chars = 0;
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && chars++ == most_chars) break;
  }
  return std::string(text.substr(0, end));
}

Status CheckLength(std::string_view text, size_t most_chars, std::string_view what) {
  if (Characters(text) <= most_chars) return Ok();
  return InvalidParameter(
      fmt::format("'{}' exceeds the maximum length of {} characters", what, most_chars));
}

Status CheckMlflowKey(std::string_view key, std::string_view parameter) {
  if (key.empty()) {
    return InvalidParameter(fmt::format(
        "Missing value for required parameter '{}'. See the API docs for more information about "
        "request parameters.",
        parameter));
  }
  if (!std::all_of(key.begin(), key.end(), IsKeyByte) || !IsUtf8(key)) {
    return InvalidValue(parameter, std::string(key),
                        "Names may only contain alphanumerics, underscores (_), dashes (-), "
                        "periods (.), spaces ( ), colon(:) and slashes (/).");
  }
  if (!IsNormalPath(key)) {
    return InvalidValue(parameter, std::string(key),
                        "Names may be treated as files in certain cases, and must not resolve to "
                        "other names when treated as such.");
  }
  if (Characters(key) > kMostKeyChars) {
    return InvalidValue(
        parameter, std::string(key),
        fmt::format("'{}' exceeds the maximum length of {} characters", parameter, kMostKeyChars));
  }
  return Ok();
}

Status CheckExperimentName(std::string_view name) {
  if (Characters(name) <= 500 && IsUtf8(name)) return Ok();
  return InvalidParameter("Experiment name exceeds the maximum length of 500 characters");
}

Status CheckModelName(std::string_view name) {
  if (name.empty()) return InvalidParameter("Registered model name cannot be empty.");
  if (name.find_first_of("/:") != std::string_view::npos || name == "." || name == ".." ||
      !IsUtf8(name)) {
    return InvalidParameter(fmt::format(
        "Invalid registered model name: '{}'. It must not contain '/' or ':', nor resolve to "
        "another name.",
        Printable(name.substr(0, 200))));
  }
  return CheckLength(name, 256, "name");
}

Status CheckLoggedModelName(std::string_view name) {
  if (name.find_first_of("/:.%\"'") == std::string_view::npos && IsUtf8(name)) return Ok();
  return InvalidParameter(fmt::format(
      "Invalid model name ({}) provided. Model name must be a non-empty string and cannot contain "
      "the following characters: ['/', ':', '.', '%', '\"', \"'\"]",
      Printable(name.substr(0, 200))));
}

Status CheckAlias(std::string_view alias) {
  const bool plain = std::all_of(alias.begin(), alias.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
  if (alias.empty() || !plain) {
    return InvalidParameter(fmt::format(
        "Invalid alias name: '{}'. Names may only contain alphanumerics, underscores (_) and "
        "dashes (-).",
        Printable(alias.substr(0, 200))));
  }
  const bool version = alias.size() > 1 && alias.front() == 'v' &&
                       std::all_of(alias.begin() + 1, alias.end(), [](char c) {
                         return std::isdigit(static_cast<unsigned char>(c)) != 0;
                       });
  if (version || ToLower(alias) == "latest") {
    return InvalidParameter(fmt::format("'{}' alias name is reserved.", alias));
  }
  return CheckLength(alias, 255, "alias");
}

Status CheckArtifactPath(std::string_view path) {
  std::string decoded(path);
  for (int round = 0; round < kMostEscapes; ++round) {
    // A client on Windows must not take it for another place either.
    const std::string there = ReplaceAll(decoded, "\\", "/");
    const bool drive = there.size() > 2 && there[1] == ':' && there[2] == '/';
    const auto parts = Split(there, '/');
    const bool up = std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
      return part.substr(0, part.find(';')) == "..";
    });
    if (drive || up || StartsWith(there, "//") || !CheckNameBeneath(decoded).ok() ||
        !IsUtf8(decoded) || std::any_of(decoded.begin(), decoded.end(), [](char c) {
          return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
        })) {
      return InvalidParameter("Invalid path");
    }
    const auto next = UrlDecode(decoded);
    if (!next || *next == decoded) return Ok();
    decoded = *next;
  }
  return InvalidParameter("Invalid path");
}

}  // namespace athanor
