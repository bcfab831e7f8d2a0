// StopRound says which processes of one rank are sent SIGTERM, from the request of a stop to its
// deadline. The first round asks all of StopTargets. The shell of `python a.py; python b.py` then
// continues with b.py: later rounds ask what has appeared since, each process once.
//
// Later rounds do not ask what is not a new program: whatever a shell runs that traps SIGTERM and
// was asked (it knows, and cleans up), what copies or sends files, and for a moment a shell that is
// between two programs, or a filter that writes the last of its input. A script that starts
// programs for ever is asked itself.
//
// It sends nothing; processes and times come from the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "run/supervisor/process_tree.h"

namespace athanor {

class StopRound {
 public:
  // A new request: the next round asks all of them again.
  void Again() { first_ = true; }
  // To be sent SIGTERM now, in this order.
  std::vector<int> Next(const std::vector<ProcessInfo>& all, int rank_pid,
                        const std::function<ProcessTraits(int)>& traits_of, int64_t now_ms);

 private:
  struct Asked {
    uint64_t start_ticks = 0;
    bool front = false;  // it was a shell or wrapper then; by exec it may become a program
  };
  bool WasAsked(const StopTarget& target) const;
  bool IsDue(const StopTarget& target, int64_t now_ms);

  bool first_ = true;
  int later_ = 0;                   // programs asked after the first look
  std::map<int, Asked> asked_;      // by pid; only those that are still there
  std::map<int, int64_t> waiting_;  // by pid: idle shells and lone filters, since when
};

}  // namespace athanor
