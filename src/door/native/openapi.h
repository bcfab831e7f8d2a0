// The OpenAPI document of the native API.
#pragma once

#include <string>

namespace athanor {

const std::string& OpenApiDocument();

}  // namespace athanor
