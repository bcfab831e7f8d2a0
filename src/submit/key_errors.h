// What is wrong with a value of a job file, said with its place. Internal to this room.
#pragma once

#include <string_view>

#include "base/result.h"
#include "submit/job_keys.h"

namespace athanor {

// Gives an error the place it lacks.
Status AtMark(const KeySource& source, YamlMark mark, Status status);
// `wanted` is what the key takes: "a list of texts".
Status WrongKind(const KeySource& source, const YamlNode& node, std::string_view key,
                 std::string_view wanted);
Status BadValue(const KeySource& source, const YamlNode& node, std::string_view key,
                const Error& reason);

}  // namespace athanor
