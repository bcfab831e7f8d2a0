// Any bytes as points that were sent: refused, and then nothing is stored, or stored once.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/io/test_dir.h"
#include "record/series/series_frames.h"
#include "record/series/series_store.h"
#include "record/series/series_testing.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  static const TestDir dir;
  static auto store = SeriesStore::Open(dir.path()).value();
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) bytes = FramedPieces(bytes);
  const JobId job{};
  Check(store->Remove(job).ok());
  const auto sent = ReadSentPoints(bytes);
  const auto added = store->AppendFrames(job, bytes);
  Check(sent.has_value() == added.has_value());
  const auto summaries = store->Summaries(job).value();
  if (!added) {
    Check(summaries.empty());
    return 0;
  }
  Check(store->AppendFrames(job, bytes).value() == 0);
  Check(summaries.empty() == (*added == 0));
  return 0;
}
