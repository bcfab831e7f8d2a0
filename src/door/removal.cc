#include "door/removal.h"

#include "base/io/files.h"
#include "base/text/text.h"
#include "link/tb_links.h"
#include "record/layout.h"

namespace athanor {

std::string ArtifactsOf(const DoorContext& context, JobId run) {
  constexpr std::string_view kScheme = "mlflow-artifacts:/";
  const std::string uri = context.runs.ArtifactsOf(run);
  // .../EXPERIMENT/RUN/artifacts, as it was made; the run's own folder goes.
  const std::string end = "/" + run.value.ToHex() + "/artifacts";
  if (!StartsWith(uri, kScheme) || !EndsWith(uri, end)) return "";
  return JoinPath(context.artifacts, DirName(uri.substr(kScheme.size())));
}

namespace {

// What is stored about a run in files. Checkpoints may be many and large: not on the control
// thread.
void RemoveFiles(DoorContext& context, JobId id, std::function<void(Status)> done) {
  if (auto logs = context.logs.Remove(id); !logs) return done(logs);
  if (auto series = context.series.Remove(id); !series) return done(series);
  const auto artifacts = ArtifactsOf(context, id);
  context.run_writer.Write(context.runs.Remove(id), {});
  auto dir = StoreLayout{context.info.home}.job(id.ToString());
  bool taken = context.readers.Submit([done, id, dir, artifacts, home = context.info.home] {
    UnlinkEvents(home, id);
    for (const auto& path : {dir, artifacts}) {
      auto removed = path.empty() ? Ok() : RemoveTree(path);
      if (!removed && Exists(path)) return done(removed);
    }
    done(Ok());
  });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping"));
}

}  // namespace

void RemoveJob(DoorContext& context, JobId id, std::function<void(Status)> done) {
  context.engine.Forget(id, [&context, id, done = std::move(done)](const Status& status) {
    if (!status) return done(status);
    RemoveFiles(context, id, done);
  });
}

void RemoveRun(DoorContext& context, JobId id, std::function<void(Status)> done) {
  if (FindJob(context, id.ToString())) return RemoveJob(context, id, std::move(done));
  RemoveFiles(context, id, std::move(done));
}

}  // namespace athanor
