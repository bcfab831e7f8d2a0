#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text/text.h"
#include "door/s3/s3_call.h"

// A path that can be read can be written again and names the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  const auto path = athanor::SplitS3Path(raw);
  (void)athanor::ParseHttpDate(raw);
  (void)athanor::Unquoted(raw);
  if (!path) return 0;
  const auto again = athanor::SplitS3Path("/" + athanor::UrlEncode(path->bucket) + "/" +
                                          athanor::UrlEncode(path->key));
  if (!again || again->bucket != path->bucket || again->key != path->key) std::abort();
  return 0;
}
