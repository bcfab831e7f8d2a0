#include "door/mlflow/job_rights.h"

#include "base/text/text.h"

namespace athanor {
namespace {

tl::unexpected<Error> NotOurs(std::string_view what) {
  return MlflowFail(
      "PERMISSION_DENIED",
      "a job's token changes the job's own run and the runs it made, not " + std::string(what));
}

// By a model's id, or the error of there being none.
Status CheckModel(const Mlflow& mlflow, const Call& call, const std::string& id) {
  const auto model = mlflow.context.models.FindLogged(id);
  if (!model) return Ok();
  const auto run = JobId::Parse((*model)->row.run_id);
  if (!run || !mlflow.context.runs.Has(*run)) return NotOurs("a model of no run");
  return CheckMayChange(mlflow, call, *run);
}

bool LiesIn(const Mlflow& mlflow, const ArtifactPlace& place, const std::string& artifacts) {
  const auto folder = PlaceOfUri(mlflow.context, artifacts);
  return folder && folder->root == place.root && StartsWith(place.path, folder->path + "/");
}

}  // namespace

Status CheckMayChange(const Mlflow& mlflow, const Call& call, JobId run) {
  if (!call.caller.attempt) return Ok();
  const auto job = mlflow.JobOf(call);
  if (job == run || !mlflow.context.runs.Has(run)) return Ok();
  if (job && mlflow.context.runs.TagOf(run, kJobTag) == job->ToString()) return Ok();
  return NotOurs("run " + run.value.ToHex());
}

Status CheckMayChange(const Mlflow& mlflow, const Call& call, const ArtifactPlace& place) {
  if (!call.caller.attempt) return Ok();
  // Wherever an experiment keeps its files, each run's and each model's id is a folder's name.
  for (const auto& part : Split(place.path, '/')) {
    std::string artifacts;
    if (const auto run = JobId::Parse(part); run && mlflow.context.runs.Has(*run)) {
      artifacts = mlflow.context.runs.ArtifactsOf(*run);
      if (LiesIn(mlflow, place, artifacts)) return CheckMayChange(mlflow, call, *run);
    } else if (const auto model = mlflow.context.models.FindLogged(part)) {
      if (LiesIn(mlflow, place, (*model)->row.artifacts)) return CheckModel(mlflow, call, part);
    }
  }
  return NotOurs("the file " + Printable(place.path.substr(0, 200)));
}

Status CheckMayChange(const Mlflow& mlflow, const Call& call, const MlflowCall& row,
                      const Fields& fields) {
  if (!call.caller.attempt || row.need != Access::kSubmit) return Ok();
  const std::string_view name = row.name;
  if (StartsWith(name, "runs.") && name != "runs.create") {
    const auto run = fields.Run();
    return run ? CheckMayChange(mlflow, call, *run) : Ok();
  }
  if (name == "logged.create") {
    const auto source = fields.Text("source_run_id");
    const auto run = JobId::Parse(source ? *source : std::string());
    return run ? CheckMayChange(mlflow, call, *run) : Ok();
  }
  if (StartsWith(name, "logged.")) return CheckModel(mlflow, call, call.captures["id"]);
  // Uploads in parts are refused for all, with a message that clients expect: there is nothing to
  // check.
  if (StartsWith(name, "artifacts.mpu_")) return Ok();
  if (StartsWith(name, "artifacts.") && !call.captures["path"].empty()) {
    return CheckMayChange(mlflow, call,
                          ArtifactPlace{mlflow.context.artifacts, call.captures["path"]});
  }
  if (name == "experiments.delete" || name == "experiments.restore" ||
      name == "experiments.update") {
    return NotOurs("an experiment, which others use too");
  }
  return Ok();
}

}  // namespace athanor
