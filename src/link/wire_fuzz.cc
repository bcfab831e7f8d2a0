#include "link/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto report = athanor::DecodeReport(bytes);
  // What was understood must survive another round trip.
  if (report && !athanor::DecodeReport(athanor::EncodeReport(*report))) __builtin_trap();
  auto reply = athanor::DecodeReply(bytes);
  if (reply && !athanor::DecodeReply(athanor::EncodeReply(*reply))) __builtin_trap();
  return 0;
}
