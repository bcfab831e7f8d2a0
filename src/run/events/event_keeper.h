// EventKeeper knows where the event files of a job's attempts are stored, so that they outlive the
// attempts. They are copies that grow with the script's own files (run/events/event_copy):
//
//   <dir>/<sub-run>/<file>                               what counts, over all attempts
//   <dir>/abandoned/attempt-1-by-2/<sub-run>/<file>      what attempt 2 did again
//
// So a TensorBoard that reads <dir> shows one value per step of the run, and the abandoned branches
// as separate runs. Settle() moves there what an earlier attempt wrote for a tag at or after the
// first step of this one; files in both places are complete at any moment.
//
// Threads: one. Errors are logged, and the next call tries again; nothing here stops a job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "eventfile/event_split.h"

namespace athanor {

class EventKeeper {
 public:
  EventKeeper(std::string dir, uint32_t attempt);

  // Where this attempt's file of that number is stored, listed as its own; the same path each time.
  Result<std::string> PlaceFor(uint32_t number, const std::string& sub_run,
                               const std::string& name);
  // This attempt has a value of that tag at that step.
  void Saw(const std::string& sub_run, std::string_view tag, int64_t step);
  bool unsettled() const { return !changed_.empty(); }
  Status Settle();

 private:
  Status Part(const std::string& path, uint32_t attempt, const StepCuts& cuts);

  std::string dir_;
  uint32_t attempt_;
  std::map<std::string, StepCuts> cuts_;  // by sub-run
  std::set<std::string> changed_;         // sub-runs whose cuts were not applied yet
};

}  // namespace athanor
