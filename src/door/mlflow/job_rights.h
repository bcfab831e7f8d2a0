// What a job's own token may change through MLflow: the job's run, runs that it made, and what
// belongs to those (artifacts, logged models). It may create experiments and tag them, but not
// rename, delete or restore one, because that affects the runs of others. The registry of models is
// shared: jobs register and promote there. Everything may be read.
#pragma once

#include <string>

#include "door/mlflow/calls.h"
#include "door/native/artifact_places.h"

namespace athanor {

// On a run that a job made: the job's id.
inline constexpr char kJobTag[] = "athanor.job_id";

// All return Ok for callers that are not jobs, and for what does not exist: that is reported
// elsewhere.
Status CheckMayChange(const Mlflow& mlflow, const Call& call, JobId run);
// A file among artifacts.
Status CheckMayChange(const Mlflow& mlflow, const Call& call, const ArtifactPlace& place);
// Everything that the call changes.
Status CheckMayChange(const Mlflow& mlflow, const Call& call, const MlflowCall& row,
                      const Fields& fields);

}  // namespace athanor
