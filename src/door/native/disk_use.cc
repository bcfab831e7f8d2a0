#include "door/native/disk_use.h"

#include <fts.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/text/text.h"

namespace athanor {

void DiskCount::Add(const JobRecord& record) {
  jobs_.emplace(record.id.ToString(), record.id);
  for (const auto& attempt : record.attempts) jobs_.emplace(attempt.id.ToString(), record.id);
  for (const auto& output : record.outputs) {
    const auto [at, fresh] = outputs_.emplace(output.blob, record.id);
    if (!fresh && at->second != record.id) at->second = JobId{};
  }
}

class DiskCount::Walk {
 public:
  explicit Walk(const DiskCount& count) : count_(count) {}

  void Tree(const std::string& root, size_t home) {
    std::string path = root;
    char* paths[] = {path.data(), nullptr};
    const std::unique_ptr<FTS, int (*)(FTS*)> tree(
        ::fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr), ::fts_close);
    if (!tree) return;
    while (const FTSENT* entry = ::fts_read(tree.get())) {
      // A folder comes twice; what vanished meanwhile takes nothing.
      if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS) continue;
      const struct stat& info = *entry->fts_statp;
      if (!S_ISDIR(info.st_mode) && info.st_nlink > 1 &&
          !linked_.emplace(info.st_dev, info.st_ino).second) {
        continue;
      }
      const std::string_view whole(entry->fts_path, entry->fts_pathlen);
      const auto below = whole.size() > home ? whole.substr(home + 1) : std::string_view();
      const auto bytes = static_cast<uint64_t>(info.st_blocks) * 512;
      Place(Split(below, '/')) += bytes;
      use_.bytes += bytes;
    }
  }

  DiskUse Finish() {
    for (const auto& [id, job] : jobs_) use_.jobs.push_back(job);
    for (const auto& [name, bytes] : shared_) {
      if (bytes > 0) use_.shared.push_back({name, bytes});
    }
    std::ranges::stable_sort(use_.jobs, std::greater(), &JobDisk::bytes);
    std::ranges::stable_sort(use_.shared, std::greater(), &DiskUse::Part::bytes);
    return std::move(use_);
  }

 private:
  // Whose a path below the home is (docs/architecture.md lists the folders).
  uint64_t& Place(const std::vector<std::string>& path) {
    const auto at = [&](size_t i) { return i < path.size() ? std::string_view(path[i]) : ""; };
    if (at(0) == "server" && at(1) == "logs") return OfJob(at(2), &JobDisk::logs, "database");
    if (at(0) == "server" && at(1) == "series") {
      return OfJob(at(3).substr(0, at(3).find('.')), &JobDisk::metrics, "database");
    }
    if (at(0) == "server") return shared_["database"];
    if (at(0) == "jobs") {
      const auto kind = at(2);
      return OfJob(at(1),
                   kind == "manifests" || kind == "parts" ? &JobDisk::checkpoints
                   : kind == "events"                     ? &JobDisk::metrics
                   : kind == "members"                    ? &JobDisk::outputs
                                                          : &JobDisk::scratch,
                   "other files");
    }
    if (at(0) == "artifacts") return OfJob(at(2), &JobDisk::outputs, "other files");
    if (at(0) == "attempts") return OfJob(at(1), &JobDisk::scratch, "other files");
    if (at(0) == "blobs") {
      const auto owner = count_.outputs_.find(std::string(at(2)));
      if (owner == count_.outputs_.end()) return shared_["sources"];
      if (owner->second == JobId{}) return shared_["outputs of several jobs"];
      return Of(owner->second).outputs;
    }
    if (at(0) == "objects") return shared_["S3 objects"];
    if (at(0) == "cache" && at(1) == "envs") return shared_["environments"];
    if (at(0) == "cache") return shared_["cache"];
    return shared_["other files"];
  }

  uint64_t& OfJob(std::string_view id, uint64_t JobDisk::*kind, const char* otherwise) {
    if (id.empty()) return shared_[otherwise];  // the folder itself
    const auto parsed = Ulid::Parse(id);
    const auto owner = parsed ? count_.jobs_.find(parsed->ToString()) : count_.jobs_.end();
    // Runs that no job made, and what jobs left that were removed.
    if (owner == count_.jobs_.end()) return shared_[parsed ? "runs without a job" : otherwise];
    return Of(owner->second).*kind;
  }

  JobDisk& Of(JobId id) {
    auto& job = jobs_[id];
    job.id = id;
    return job;
  }

  const DiskCount& count_;
  DiskUse use_;
  std::map<JobId, JobDisk> jobs_;
  std::map<std::string, uint64_t> shared_;
  std::set<std::pair<dev_t, ino_t>> linked_;  // files of several names, once counted
};

DiskUse DiskCount::Count(bool jobs_only) const {
  Walk walk(*this);
  const size_t home = layout_.root.size();
  if (!jobs_only) {
    walk.Tree(layout_.root, home);
    return walk.Finish();
  }
  for (const auto& root : {layout_.logs(), layout_.series(), layout_.jobs(), layout_.artifacts(),
                           layout_.attempts(), layout_.blobs()}) {
    walk.Tree(root, home);
  }
  return walk.Finish();
}

}  // namespace athanor
