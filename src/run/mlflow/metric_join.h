// Joins kept calls that log metrics of one run (log-metric, log-batch) into one log-batch call, as
// long as that is as good as delivering them one by one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "link/kept_call.h"
#include "run/mlflow/call_spool.h"

namespace athanor {

class MetricJoin {
 public:
  // Whether the call is joined to those before: it logs only metrics, is of the same run and API,
  // its number follows the last one, and there is room. Otherwise nothing changes.
  bool Add(const KeptCall& call);

  size_t calls() const { return ends_.size(); }
  uint64_t last() const { return first_ + ends_.size() - 1; }  // number of the last call
  // If there are two or more:
  KeptCall Joined() const;                                     // with the number of the first
  const std::vector<uint32_t>& ends() const { return ends_; }  // as of KeptPlace

 private:
  std::string api_;   // "/api/2.0/mlflow/runs/"
  std::string run_;   // its id
  std::string list_;  // of the metrics: "{…},{…}"
  uint64_t first_ = 0;
  std::vector<uint32_t> ends_;
};

}  // namespace athanor
