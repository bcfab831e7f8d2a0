#include "track/run_entry.h"

#include <algorithm>

namespace athanor {

const RunExtra& RunEntry::more() const {
  static const RunExtra kNone;
  return extra ? *extra : kNone;
}

RunExtra& RunEntry::AddMore() {
  if (!extra) extra = std::make_unique<RunExtra>();
  return *extra;
}

const RunMetric* FindMetric(const RunEntry& run, uint32_t key) {
  const auto at = std::lower_bound(run.metrics.begin(), run.metrics.end(), key,
                                   [](const auto& metric, uint32_t k) { return metric.key < k; });
  return at != run.metrics.end() && at->key == key ? &*at : nullptr;
}

}  // namespace athanor
