#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "door/aws/xml.h"

namespace {

std::string Write(const athanor::XmlNode& node) {
  std::string out = "<" + node.name + ">" + athanor::XmlEscape(node.text);
  for (const auto& child : node.children) out += Write(child);
  return out + "</" + node.name + ">";
}

}  // namespace

// What was read can be written and reads the same again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = athanor::ParseXml({reinterpret_cast<const char*>(data), size});
  if (!read || read->name.empty()) return 0;
  const std::string written = Write(*read);
  const auto again = athanor::ParseXml(written);
  // A name that was only a prefix ("a:") is written without one, which is not a name.
  if (!again && written.find("<>") == std::string::npos) std::abort();
  if (again && Write(*again) != written) std::abort();
  return 0;
}
