// What a job's own token may change through MLflow: the job's run, runs that it made, and what
// belongs to those (artifacts, logged models). It may make experiments and tag them, but not rename,
// delete or restore one, since that is done to everybody's runs in it. The registry of models is
// shared: jobs register and promote there. Everything may be read.
#pragma once

#include <string>

#include "door/artifact_places.h"
#include "door/mlflow/calls.h"

namespace athanor {

// On a run that a job made: the job's id.
inline constexpr char kJobTag[] = "athanor.job_id";

// All are Ok for callers that are no job, and for what does not exist: that is told elsewhere.
Status CheckMayChange(const Mlflow& mlflow, const Call& call, JobId run);
// A file among artifacts.
Status CheckMayChange(const Mlflow& mlflow, const Call& call, const ArtifactPlace& place);
// Whatever the call changes.
Status CheckMayChange(const Mlflow& mlflow, const Call& call, const MlflowCall& row,
                      const Fields& fields);

}  // namespace athanor
