#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "door/cloudwatch/query_form.h"
#include "net/http/http_types.h"

// A form that can be read can be written as XML and as JSON, whatever is in it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto form = athanor::ParseQuery({reinterpret_cast<const char*>(data), size});
  if (!form) return 0;
  const auto object = athanor::ObjectFromForm(*form);
  if (!object) return 0;
  (void)athanor::DumpJson(*object);
  (void)athanor::MetricsXml(*object);
  return 0;
}
