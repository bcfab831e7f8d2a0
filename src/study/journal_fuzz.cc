// Any bytes as lines of a study's journal: read or refused, and what is read reads back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text/text.h"
#include "study/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  StudyRecord record;
  for (const auto& line : Split({reinterpret_cast<const char*>(data), size}, '\n')) {
    const auto event = ReadEvent(line);
    if (!event) continue;
    const auto again = ReadEvent(WriteEvent(*event));
    if (!again) std::abort();
    (void)Apply(record, *event).ok();
    (void)SearchLine(record, *event);
  }
  (void)record.Best();
  return 0;
}
