// Compresses a text in one call, with gzip or zstd at their fastest level: for data that is sent
// once and thrown away. For archives see base/io/archive.h.
#pragma once

#include <string>
#include <string_view>

namespace athanor {

std::string Gzip(std::string_view bytes);
std::string Zstd(std::string_view bytes);

}  // namespace athanor
