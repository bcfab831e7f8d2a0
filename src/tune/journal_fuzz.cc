// A journal that can be read must replay or be refused; one that replays must be able to continue,
// and what was read must be written again as the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tune/session.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  // Checksums are hard to guess: bytes are also taken as the events, which are then sealed.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string sealed;
  tune::JournalWriter writer;
  for (size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    if (const auto event = ParseJson(text.substr(from, end - from)); event && event->is_object()) {
      sealed += writer.Line(*event);
    }
    from = end + 1;
  }
  for (const std::string_view each : {text, std::string_view(sealed)}) {
    const auto journal = tune::ReadJournal(each);
    if (!journal) {
      if (each == sealed) std::abort();
      continue;
    }
    if (journal->events.size() > 40) continue;
    auto session = tune::Session::Replay(*journal);
    if (session && (*session)->space().size() <= 8) (void)(*session)->Ask();
  }
  return 0;
}
