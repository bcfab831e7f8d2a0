// What an agent sends about its files, and what a server answers, may be any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "link/job_files_wire.h"
#include "link/local_job_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace wire = athanor::files_wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)wire::DecodeQuestion(text).has_value();
  (void)wire::DecodeThere(text).has_value();
  (void)wire::DecodeUpload(text).has_value();
  (void)wire::DecodeCheckpoint(text).has_value();
  (void)wire::DecodeSteps(text).has_value();
  if (const auto entries = wire::DecodeEntries(text)) {
    for (const auto& entry : *entries) (void)athanor::CheckEntryName(entry.name, true).ok();
  }
  if (const auto care = wire::DecodeCare(text); care && !wire::DecodeCare(wire::Encode(*care))) {
    __builtin_trap();  // what was understood once must be understood again
  }
  (void)athanor::CheckEntryName(std::string(text), false).ok();
  return 0;
}
