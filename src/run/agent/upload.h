// Stores everything that an attempt left on its host: what is in its working folder, its model and
// its output (run/agent/working_files, run/agent/outputs), with copies at the place that the spec
// names (run/agent/publish).
#pragma once

#include <string>

#include "base/io/held_folder.h"
#include "link/job_files.h"
#include "link/plan.h"
#include "link/wire.h"

namespace athanor {

// Each output is stored separately: a failure of one does not cost the others, and is in the frame.
// `scratch_dir`: see KeepOutputs.
UploadedFrame StoreOutputs(const AttemptPlan& plan, const std::string& scratch_dir,
                           const HeldFolder& ml, JobFiles& files);

}  // namespace athanor
