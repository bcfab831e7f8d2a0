// A text made smaller in one go, as gzip or zstd have it, at their quickest: for what is sent once
// and thrown away. Archives are base/archive.h's.
#pragma once

#include <string>
#include <string_view>

namespace athanor {

std::string Gzip(std::string_view bytes);
std::string Zstd(std::string_view bytes);

}  // namespace athanor
