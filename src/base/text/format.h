// fmt::format, from one place. Only .cc files include this.
#pragma once

#include <fmt/format.h>  // IWYU pragma: export
