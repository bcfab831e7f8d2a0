// Any bytes as the records of a segment: no crash, and the same records whether
// they are read at once or in the pieces in which a writer commits them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "link/spool.h"

namespace {

using athanor::SpoolBatch;
using athanor::SpoolParser;

struct Outcome {
  std::string text;
  std::string checkpoints;
  size_t used = 0;
  bool bad = false;
};

void Note(const SpoolBatch& batch, Outcome& outcome) {
  for (const auto& point : batch.points) {
    uint64_t bits;
    std::memcpy(&bits, &point.value, sizeof bits);
    outcome.text += std::string(point.name) + "," + std::to_string(point.seq) + "," +
                    std::to_string(point.step.value_or(-1)) + "," + std::to_string(bits) + ";";
  }
  for (const auto& saved : batch.checkpoints) {
    outcome.checkpoints += std::to_string(saved.step) + "," + std::to_string(saved.save_ns) + "," +
                           std::to_string(saved.wall_ns) + ";";
  }
}

Outcome ParseInPieces(std::string_view bytes, size_t piece) {
  Outcome outcome;
  SpoolParser parser;
  for (size_t end = std::min(piece, bytes.size());; end = std::min(end + piece, bytes.size())) {
    SpoolBatch batch;
    size_t used = 0;
    const auto stop = parser.Parse(bytes.substr(outcome.used, end - outcome.used), batch, used);
    outcome.used += used;
    Note(batch, outcome);
    outcome.bad = stop == SpoolParser::Stop::kBad;
    if (outcome.bad || end == bytes.size()) return outcome;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = ParseInPieces(bytes, SIZE_MAX);
  const Outcome pieces = ParseInPieces(bytes, size_t{data[0]} * 8 + 1);
  if (whole.text != pieces.text || whole.checkpoints != pieces.checkpoints ||
      whole.used != pieces.used || whole.bad != pieces.bad) {
    std::abort();
  }
  return 0;
}
