#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/aws/aws_chunked.h"

namespace {

std::string Decode(athanor::SigV4Payload mode, std::string_view bytes, size_t step) {
  athanor::AwsChunkedDecoder decoder(mode, {});
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!decoder.Feed(bytes.substr(at, step), [&](std::string_view p) { out += p; }).ok())
      return "!";
  }
  return decoder.Finish().ok() ? "=" + out : "!";
}

}  // namespace

// A body means the same, no matter how it is cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto mode = data[0] % 2 ? athanor::SigV4Payload::kUnsignedChunksTrailer
                                : athanor::SigV4Payload::kSignedChunks;
  const auto whole = Decode(mode, bytes, size);
  if (Decode(mode, bytes, 1) != whole || Decode(mode, bytes, 3) != whole) std::abort();
  return 0;
}
