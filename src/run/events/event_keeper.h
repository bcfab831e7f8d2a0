// EventKeeper knows where the event files of a job's attempts are stored, so that they outlive the
// attempts. They are copies that grow with the script's own files (run/events/event_copy), entries
// of the job (link/job_files.h):
//
//   <folder>/<sub-run>/<file>                            what counts, over all attempts
//   <folder>/abandoned/attempt-1-by-2/<sub-run>/<file>   what attempt 2 did again
//
// So a TensorBoard that reads the folder shows one value per step of the run, and the abandoned
// branches as separate runs. Settle() moves there what an earlier attempt wrote for a tag at or
// after the first step of this one; files in both places are complete at any moment.
//
// Threads: one. After an error, the next call tries again; nothing here stops a job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "eventfile/event_split.h"
#include "link/job_files.h"

namespace athanor {

// The first step of each tag that an attempt has, by sub-run. Threads: one.
class FirstSteps {
 public:
  void Saw(const std::string& sub_run, std::string_view tag, int64_t step);
  // Some have changed since they were taken.
  bool changed() const { return !changed_.empty(); }
  // Those of the sub-runs in which one has changed.
  std::map<std::string, StepCuts> Take();
  // They count as changed again.
  void PutBack(const std::set<std::string>& sub_runs);

 private:
  std::map<std::string, StepCuts> steps_;
  std::set<std::string> changed_;
};

class EventKeeper {
 public:
  // Parts of files are made in `scratch_dir`.
  EventKeeper(JobFiles& files, std::string folder, uint32_t attempt, std::string scratch_dir);

  // The entry for this attempt's file of that number, listed as its own; the same each time.
  Result<std::string> PlaceFor(uint32_t number, const std::string& sub_run,
                               const std::string& name);
  // Parts what earlier attempts wrote where this one took over.
  Status Settle(const std::map<std::string, StepCuts>& steps);

 private:
  struct Listed {
    uint32_t attempt = 0;
    std::string path;    // below the folder
    std::string number;  // of the file in its attempt; empty: not known any more
  };
  Status Load();
  Status Part(const std::string& path, uint32_t attempt, const StepCuts& cuts);

  JobFiles& files_;
  const std::string folder_;
  const uint32_t attempt_;
  const std::string scratch_dir_;
  bool loaded_ = false;
  std::vector<Listed> list_;
  uint64_t list_bytes_ = 0;
  std::set<std::string> there_;  // entries
};

}  // namespace athanor
