// MLflow's limits on names and values, with its error messages. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/text/json.h"

namespace athanor {

inline constexpr size_t kMostKeyChars = 250;
inline constexpr size_t kMostParamChars = 6000;
inline constexpr size_t kMostTagChars = 8000;
inline constexpr size_t kMostBatchMetrics = 1000;
inline constexpr size_t kMostBatchParams = 100;
inline constexpr size_t kMostBatchTags = 100;
inline constexpr size_t kMostBatchItems = 1000;

// The key of a metric, param or tag: letters, digits and _-. :/ ; a normal relative path.
// `parameter` is its name in the request: "metrics[0].key".
Status CheckMlflowKey(std::string_view key, std::string_view parameter);
Status CheckExperimentName(std::string_view name);
Status CheckModelName(std::string_view name);
Status CheckLoggedModelName(std::string_view name);
Status CheckAlias(std::string_view alias);
Status CheckLength(std::string_view text, size_t most_chars, std::string_view what);
// The first `most` characters.
std::string CutTo(std::string_view text, size_t most_chars);
size_t Characters(std::string_view utf8);

// The path of an artifact beneath its root: "a/b.txt". kInvalid: absolute, empty, with "..", a
// drive, a control character, or one of these in any number of URL escapes.
Status CheckArtifactPath(std::string_view path);

}  // namespace athanor
