// Reads the server's answers: members that may be missing, times, and how they look.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text/json.h"

namespace athanor {

std::string Text(const Json& json, const char* key);  // "" when missing or not a text
int64_t Number(const Json& json, const char* key);    // 0 when missing or not a number
// Milliseconds of an RFC 3339 time as the API writes it; 0 if there is none.
int64_t TimeOf(const Json& json, const char* key);

std::string Local(int64_t ms);  // "2026-11-15 09:30:00", in this zone
std::string Ago(int64_t ms);    // "5 m ago"; "-" without a time
// From when its script first ran until it ended, or now (job/shown.h); "-" if it never ran.
std::string Took(const Json& job);
std::string NumberText(const Json& value);  // six digits; NaN and infinities by name
// Where the points of a metric are, below `base` (".../metrics"); more parameters follow with &.
std::string PointsTarget(const std::string& base, const std::string& name);
// " name value"; nothing if the value is empty.
void Field(const char* name, const std::string& value);
// Files that a script left and that were not stored, one per line: name, size and why. `left_out`
// belongs to an output, and may be empty.
std::vector<std::string> LeftOutLines(const Json& left_out);
int PrintJson(const Json& body);
// A sentence for each metric of the job's own patterns that has no point: "loss: no line matched
// 'loss=(\\S+)'".
std::vector<std::string> UnmatchedMetrics(const Json& job);

}  // namespace athanor
