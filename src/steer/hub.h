// The Hub tells streams that there is something new about a job, and holds what is known about live
// jobs but not worth storing: usage and progress. Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "job/ids.h"
#include "job/record.h"
#include "link/wire.h"

namespace athanor {

enum class News { kState, kLog, kPoints, kUsage };

struct LiveStats {
  std::optional<UsageFrame> usage;       // of the first host
  std::map<uint32_t, UsageFrame> hosts;  // of each
  std::optional<ProgressFrame> progress;
  uint64_t supervisor_pid = 0;
};

class Hub {
 public:
  using Listener = std::function<void(JobId, News)>;
  using Id = uint64_t;

  Id Listen(JobId job, Listener listener);
  Id ListenAll(Listener listener);   // state changes of every job
  Id ListenNews(Listener listener);  // whatever is new about any job or run
  void Forget(Id id);
  void Tell(JobId job, News news);

  LiveStats& Stats(JobId job) { return stats_[job]; }
  const LiveStats* FindStats(JobId job) const;
  void Drop(JobId job) { stats_.erase(job); }
  size_t listeners() const { return by_id_.size(); }

 private:
  struct Entry {
    std::optional<JobId> job;
    Listener listener;
  };
  std::map<Id, Entry> by_id_;
  std::multimap<JobId, Id> by_job_;
  std::set<Id> all_;   // for states
  std::set<Id> news_;  // for everything
  std::map<JobId, LiveStats> stats_;
  Id next_ = 1;
};

}  // namespace athanor
