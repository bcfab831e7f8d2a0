#include "door/trash.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/io/files.h"
#include "base/text/text.h"
#include "door/removal.h"
#include "record/layout.h"
#include "record/series/series_places.h"
#include "run/environment/environment_cache.h"

namespace athanor {
namespace {

uint64_t BytesOf(const DoorContext& context, JobId id) {
  const StoreLayout layout{context.info.home};
  const std::string name = id.ToString();
  uint64_t bytes = TreeBytes(layout.job(name));
  if (const auto artifacts = ArtifactsOf(context, id); !artifacts.empty()) {
    bytes += TreeBytes(artifacts);
  }
  struct stat info {};
  const auto series = FindSeries(layout.series(), id);
  if (::stat(series.c_str(), &info) == 0) bytes += static_cast<uint64_t>(info.st_size);
  return bytes + context.logs.Bytes(id).value_or(0);
}

// The next one when this one is gone; an error ends it.
void RemoveFrom(DoorContext& context, std::shared_ptr<std::vector<TrashedRun>> due, size_t at,
                std::function<void(Status)> done) {
  if (at == due->size()) return done(Ok());
  RemoveRun(context, (*due)[at].id, [&context, due, at, done](const Status& status) {
    if (!status) return done(status);
    context.loop.Post([&context, due, at, done] { RemoveFrom(context, due, at + 1, done); });
  });
}

}  // namespace

uint64_t Trash::bytes() const {
  uint64_t sum = 0;
  for (const auto& run : due) sum += run.bytes;
  return sum;
}

Trash LookIntoTrash(const DoorContext& context, WallTime before,
                    const std::vector<JobRecord>& live) {
  std::set<JobId> running;
  for (const auto& record : live) running.insert(record.id);
  RunQuery query;
  query.view = ViewType::kDeleted;
  query.any_order = true;
  Trash trash;
  context.runs.Peek(context.runs.Search(query).runs, [&](const RunEntry& run) {
    if (run.more().deleted_ms < before.ms && !running.contains(run.id)) {
      trash.due.push_back({run.id, 0});
    } else {
      ++trash.kept;
    }
  });
  for (auto& run : trash.due) run.bytes = BytesOf(context, run.id);
  return trash;
}

void EmptyTrash(DoorContext& context, std::vector<TrashedRun> due,
                std::function<void(Status)> done) {
  RemoveFrom(context, std::make_shared<std::vector<TrashedRun>>(std::move(due)), 0,
             std::move(done));
}

}  // namespace athanor
