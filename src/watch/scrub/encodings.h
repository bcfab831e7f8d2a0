// The forms in which a secret value appears in text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace athanor {

// The value first, then its other forms, each once and none shorter than 6 bytes if `value` has at
// least 6.
std::vector<std::string> EncodedForms(std::string_view value);

}  // namespace athanor
