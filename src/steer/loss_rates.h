// LossRates measures how often machines of a kind are lost, per instance type and market: attempts
// are told of it, because the best interval between checkpoints depends on it.
//
// Threads: the executor's; rows are written in `writer`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/exec/pool.h"
#include "job/event.h"
#include "job/record.h"

namespace athanor {

class LossStore;

class LossRates {
 public:
  LossRates(LossStore& store, Pool& writer) : store_(store), writer_(writer) {}

  struct Rate {
    int64_t mtbf_ms = 0;  // mean time between losses
    std::string source;   // "measured: 3 in 41 h"; "assumed, none was lost yet"
  };
  Rate Of(const JobRecord& record, const Attempt& attempt) const;
  // Counts the attempts that ended with these events, lost or not.
  void Count(const JobRecord& record, const std::vector<StoredEvent>& events);

  // The instance type of an attempt; "local": none was asked for.
  static std::string TypeOf(const JobRecord& record, const Attempt& attempt);

 private:
  LossStore& store_;
  Pool& writer_;
};

}  // namespace athanor
