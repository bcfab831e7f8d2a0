// Json is nlohmann's ordered value. Headers include this (json_fwd, 0.7 s a
// file); only .cc files that build or read documents include nlohmann/json.hpp.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace athanor {

using Json = nlohmann::ordered_json;

// kInvalid with line and column. Depth is limited to 64, duplicate keys refused.
Result<Json> ParseJson(std::string_view text);
// Compact; NaN and infinities become the strings "NaN", "Infinity", "-Infinity"; invalid UTF-8 is
// replaced instead of throwing.
std::string DumpJson(const Json& value);
std::string DumpJsonPretty(const Json& value);

}  // namespace athanor
