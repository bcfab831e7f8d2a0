// Puts what a job made where its spec says in the object store: outputs at the end,
// checkpoints as they are kept. The job's own copies are not touched.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/held_folder.h"
#include "base/result.h"
#include "job/record.h"
#include "link/objects_client.h"
#include "link/plan.h"
#include "record/objects/blob_store.h"

namespace athanor {

// <output_to>/<job>/output/model.tar.gz and output.tar.gz, or with `output_plain` the files of
// model/ below .../output/model/. Nothing when the spec names no place.
Status PublishOutputs(const AttemptPlan& plan, const HeldFolder& ml, const BlobStore& blobs,
                      const std::vector<Output>& outputs);

// The files of a kept checkpoint below spec.checkpoints.uri; those that are there already as
// they were kept are not sent again. What the script removed stays there.
// Threads: one at a time.
class CheckpointPublisher {
 public:
  explicit CheckpointPublisher(const AttemptPlan& plan);
  Status Publish(const std::string& checkpoint);  // its id

 private:
  const AttemptPlan& plan_;
  ObjectsClient objects_;
  std::map<std::string, std::vector<std::string>> sent_;  // parts by name
};

}  // namespace athanor
