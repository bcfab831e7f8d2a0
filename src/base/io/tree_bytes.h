// How much a folder takes, with everything below it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace athanor {

// Size of the files below a folder, except names directly in it that are left out; what cannot be
// read does not count.
uint64_t TreeBytes(const std::string& path, const std::vector<std::string>& leave = {});

}  // namespace athanor
