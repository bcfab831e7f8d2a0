// What is new about jobs and runs, collected until it is sent: a job that changes a thousand times
// per second is news once. Remembers for a while when each was sent, so that a page that was away
// can get what it missed. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "job/ids.h"
#include "steer/hub.h"

namespace athanor {

class LiveNews {
 public:
  struct Batch {
    std::set<JobId> jobs;  // state, usage or progress
    std::set<JobId> runs;  // points
    std::set<JobId> logs;
    bool empty() const { return jobs.empty() && runs.empty() && logs.empty(); }
  };

  // `life` identifies this life of the server: what another one sent is unknown here. `most` is how
  // many jobs and runs are remembered.
  explicit LiveNews(std::string life, size_t most = 4096);

  void Note(JobId id, News news);
  bool HasStates() const { return !states_.empty(); }
  bool HasNumbers() const { return !numbers_.empty(); }

  // What to send now: changes of state, and with `numbers` everything else.
  Batch Take(bool numbers);

  // The position after the last Take: "life.17".
  std::string Position() const;
  // What was taken at that position and later. None: that is no longer known.
  std::optional<Batch> Since(std::string_view position) const;

 private:
  void Remember(std::map<JobId, uint64_t>& told, const std::set<JobId>& ids) const;

  const std::string life_;
  const size_t most_;
  std::set<JobId> states_;
  Batch numbers_;
  uint64_t turn_ = 0;
  uint64_t known_from_ = 0;
  std::map<JobId, uint64_t> jobs_told_;
  std::map<JobId, uint64_t> runs_told_;
  std::map<JobId, uint64_t> logs_told_;
};

}  // namespace athanor
