// The journal of a search: one line per event, "crc json\n", where the checksum (CRC-32C, eight hex
// digits) is chained from line to line, so that a changed, missing or moved line is detected.
// Append-only; the bytes of a journal depend only on its events.
//
//   created {"e":"created","version":1,"space":[...],"seed":7,"strategy":"auto","goal":"minimize"}
//   asked     {"e":"asked","id":0,"params":{...}}
//   told      {"e":"told","id":0,"value":0.3}          "value":null: failed
//   imported  {"e":"imported","params":{...},"value":0.3}
//   ranges    {"e":"ranges","ranges":{"lr":{"low":1e-5,"high":0.01}}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"

namespace athanor::tune {

class JournalWriter {
 public:
  // Continues after `checksum`, that of the last line (0: none).
  explicit JournalWriter(uint32_t checksum = 0) : checksum_(checksum) {}
  std::string Line(const Json& event);

 private:
  uint32_t checksum_;
};

struct JournalText {
  std::vector<std::string> events;  // JSON objects
  size_t whole = 0;                 // bytes of whole lines; what follows was torn by a crash
  uint32_t checksum = 0;            // of the last whole line
};

// kCorrupt with the number of the line if a complete line is invalid; a last line without its
// newline is left out.
Result<JournalText> ReadJournal(std::string_view text);

}  // namespace athanor::tune
