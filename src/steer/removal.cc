#include "steer/removal.h"

#include <utility>

#include "base/io/files.h"
#include "link/tb_links.h"
#include "record/jobs/job_store.h"
#include "record/logs/log_store.h"
#include "record/runs/run_writer.h"
#include "record/series/series_store.h"
#include "steer/engine.h"

namespace athanor {

void Removal::RemoveFiles(JobId id, const Done& done) {
  if (auto logs = parts_.logs.Remove(id); !logs) return done(logs);
  if (auto series = parts_.series.Remove(id); !series) return done(series);
  const auto artifacts =
      parts_.artifacts(id);  // the run says where they are, as long as it is known
  parts_.run_writer.Write(parts_.forget_run(id), {});
  const auto dir = parts_.layout.job(id.ToString());
  const bool taken = parts_.readers.Submit([done, id, dir, artifacts, home = parts_.layout.root] {
    UnlinkEvents(home, id);
    for (const auto& path : {dir, artifacts}) {
      const auto removed = path.empty() ? Ok() : RemoveTree(path);
      if (!removed && Exists(path)) return done(removed);
    }
    done(Ok());
  });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping"));
}

void Removal::RemoveJob(JobId id, Done done) {
  parts_.engine.Forget(id, [this, id, done = std::move(done)](const Status& status) {
    if (!status) return done(status);
    RemoveFiles(id, done);
  });
}

void Removal::RemoveRun(JobId id, Done done) {
  if (parts_.engine.Live(id) != nullptr || parts_.jobs.Find(id)) {
    return RemoveJob(id, std::move(done));
  }
  RemoveFiles(id, done);
}

void Removal::RemoveRuns(std::vector<JobId> ids, Done done) {
  RemoveFrom(std::make_shared<const std::vector<JobId>>(std::move(ids)), 0, std::move(done));
}

void Removal::RemoveFrom(std::shared_ptr<const std::vector<JobId>> ids, size_t at, Done done) {
  if (at == ids->size()) return done(Ok());
  RemoveRun((*ids)[at], [this, ids, at, done](const Status& status) {
    if (!status) return done(status);
    parts_.executor.Post([this, ids, at, done] { RemoveFrom(ids, at + 1, done); });
  });
}

}  // namespace athanor
