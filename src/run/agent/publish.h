// Copies what a job made to the place in the object store that its spec names: outputs at the end,
// checkpoints as they are stored. The job's own copies are not touched.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/io/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "link/job_files.h"
#include "link/objects_client.h"
#include "link/plan.h"
#include "run/agent/outputs.h"

namespace athanor {

// <output_to>/<job>/output/model.tar.gz and output.tar.gz, or with `output_plain` the files of
// model/ below .../output/model/; of every host but the first below .../output/algo-2/. Does
// nothing if the spec names no place.
Status PublishOutputs(const AttemptPlan& plan, const HeldFolder& ml,
                      const std::vector<KeptOutput>& outputs);

// The files of a stored checkpoint below spec.checkpoints.uri; unchanged files that are there
// already are not sent again. Files that the script removed stay there. Threads: one at a time.
class CheckpointPublisher {
 public:
  // `scratch_dir`: for a file that is made of several parts.
  CheckpointPublisher(const AttemptPlan& plan, std::string scratch_dir);
  Status Publish(JobFiles& files, const std::string& checkpoint);  // its id

 private:
  const AttemptPlan& plan_;
  const std::string scratch_dir_;
  ObjectsClient objects_;
  std::map<std::string, std::vector<std::string>> sent_;  // parts by name
};

}  // namespace athanor
