// What is wrong with a value of a job file, with its position. Internal to this room.
#pragma once

#include <string_view>

#include "base/result.h"
#include "submit/job_keys.h"

namespace athanor {

// Adds the position to an error without one.
Status AtMark(const KeySource& source, YamlMark mark, Status status);
// `wanted` is what the key accepts: "a list of texts".
Status WrongKind(const KeySource& source, const YamlNode& node, std::string_view key,
                 std::string_view wanted);
Status BadValue(const KeySource& source, const YamlNode& node, std::string_view key,
                const Error& reason);

}  // namespace athanor
