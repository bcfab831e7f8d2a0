// Any bytes as records of kept metrics: nothing breaks, and only known names are reported.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "record/runs/kept_metrics.h"

namespace {

class Counting : public athanor::KeptMetrics::Reader {
 public:
  uint32_t KeyOf(std::string_view) override { return keys_++; }
  bool Kept(athanor::JobId, athanor::Resumes, std::vector<athanor::RunMetric> metrics) override {
    for (const auto& metric : metrics) {
      if (metric.key >= keys_) std::abort();
    }
    return true;
  }
  void Touched(athanor::JobId) override {}

 private:
  uint32_t keys_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Counting reader;
  athanor::KeptRecords records(reader);
  // A byte is the length of the record that follows.
  for (std::string_view rest(reinterpret_cast<const char*>(data), size); !rest.empty();) {
    const size_t length = std::min<size_t>(static_cast<uint8_t>(rest[0]), rest.size() - 1);
    (void)records.Take(rest.substr(1, length));
    rest.remove_prefix(1 + length);
  }
  return 0;
}
