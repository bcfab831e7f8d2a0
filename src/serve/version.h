#pragma once

namespace athanor {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace athanor
