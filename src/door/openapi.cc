#include "door/openapi.h"

namespace athanor {

const std::string& OpenApiDocument() {
  static const std::string document = R"({"openapi":"3.0.3","info":{"title":"Athanor","version":"1"},"paths":{}})";
  return document;
}

}  // namespace athanor
