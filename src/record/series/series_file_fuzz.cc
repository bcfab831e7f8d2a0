// Any bytes as a series file: the store opens it, reads it and appends to it, and after a restart
// it finds all of that again, with nothing more to cut.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/io/files.h"
#include "base/io/test_dir.h"
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
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) bytes = FramedPieces(bytes);
  const JobId job{};
  const std::string id = job.ToString();
  Check(MakeDirs(dir / id.substr(id.size() - 2)).ok());
  Check(ReplaceFile(dir / (id.substr(id.size() - 2) + "/" + id + ".series"), bytes).ok());

  auto store = SeriesStore::Open(dir.path()).value();
  const auto summaries = store->Summaries(job);
  if (!summaries) return 0;  // another job's, or another format
  for (const auto& summary : *summaries) {
    const auto points = store->Read(job, summary.name);
    Check(points && points->size() == summary.count);
  }
  const PointBatch batch{7, 0, 77, {{UINT64_MAX, {"fuzz/added", 3, 4, 5.0}}}};
  const auto added = store->Append(job, batch);
  Check(added.has_value());

  bool damaged_tail = false;
  auto again = SeriesStore::Open(dir.path(), [&](JobId, const Error& error) {
                 damaged_tail |= error.what.find("cut off") != std::string::npos;
               }).value();
  const auto after = again->Summaries(job);
  Check(after && after->size() >= summaries->size());
  Check(!damaged_tail);
  Check(again->Append(job, batch).value() == 0);
  if (*added == 1) Check(again->Read(job, "fuzz/added").has_value());
  return 0;
}
