#include "track/trash.h"

#include <sys/stat.h>

#include <string_view>

#include "base/io/files.h"
#include "base/io/tree_bytes.h"
#include "base/text/text.h"
#include "record/logs/log_store.h"
#include "record/series/series_places.h"
#include "track/run_book.h"

namespace athanor {
namespace {

uint64_t BytesOf(const RunBook& runs, const LogStore& logs, const StoreLayout& layout, JobId id) {
  uint64_t bytes = TreeBytes(layout.job(id.ToString()));
  if (const auto artifacts = ArtifactFolderOf(runs, layout, id); !artifacts.empty()) {
    bytes += TreeBytes(artifacts);
  }
  struct stat info {};
  const auto series = FindSeries(layout.series(), id);
  if (::stat(series.c_str(), &info) == 0) bytes += static_cast<uint64_t>(info.st_size);
  return bytes + logs.Bytes(id).value_or(0);
}

}  // namespace

uint64_t Trash::bytes() const {
  uint64_t sum = 0;
  for (const auto& run : due) sum += run.bytes;
  return sum;
}

std::vector<JobId> Trash::ids() const {
  std::vector<JobId> all;
  for (const auto& run : due) all.push_back(run.id);
  return all;
}

Trash LookIntoTrash(RunBook& runs, const LogStore& logs, const StoreLayout& layout, WallTime before,
                    const std::set<JobId>& live) {
  RunQuery query;
  query.view = ViewType::kDeleted;
  query.any_order = true;
  Trash trash;
  runs.Peek(runs.Search(query).runs, [&](const RunEntry& run) {
    if (run.more().deleted_ms < before.ms && !live.contains(run.id)) {
      trash.due.push_back({run.id, 0});
    } else {
      ++trash.kept;
    }
  });
  for (auto& run : trash.due) run.bytes = BytesOf(runs, logs, layout, run.id);
  return trash;
}

std::string ArtifactFolderOf(const RunBook& runs, const StoreLayout& layout, JobId run) {
  constexpr std::string_view kScheme = "mlflow-artifacts:/";
  const std::string uri = runs.ArtifactsOf(run);
  // .../EXPERIMENT/RUN/artifacts, as it was made; the run's own folder goes.
  const std::string end = "/" + run.value.ToHex() + "/artifacts";
  if (!StartsWith(uri, kScheme) || !EndsWith(uri, end)) return "";
  return JoinPath(layout.artifacts(), DirName(uri.substr(kScheme.size())));
}

}  // namespace athanor
