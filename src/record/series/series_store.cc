#include "record/series/series_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/series/series_frames.h"
#include "record/series/series_parts.h"
#include "record/series/series_places.h"

namespace athanor {
namespace {

using NewNames = std::map<std::string_view, uint32_t>;  // that a write defines, with their ids

Status CheckNames(const PointBatch& batch) {
  for (const auto& item : batch.items) {
    const auto& name = item.point.name;
    if (!name.empty() && name.size() <= kMaxSeriesName) continue;
    return Fail(
        Error{ErrorCode::kInvalid,
              name.empty() ? "a metric has an empty name"
                           : "a metric's name is too long: " + Printable(name.substr(0, 60)),
              "shorten the name in the script, or in the `metrics` of the job file"}
            .Why(fmt::format("it has {} bytes; 1 to {} can be kept", name.size(), kMaxSeriesName)));
  }
  return Ok();
}

// The items above `last`, by rising seq.
std::vector<const PointBatch::Item*> FreshItems(const PointBatch& batch,
                                                std::optional<uint64_t> last) {
  std::vector<const PointBatch::Item*> items;
  items.reserve(batch.items.size());
  for (const auto& item : batch.items) {
    if (!last || item.seq > *last) items.push_back(&item);
  }
  const auto below = [](const auto* a, const auto* b) { return a->seq < b->seq; };
  if (!std::is_sorted(items.begin(), items.end(), below)) {
    std::stable_sort(items.begin(), items.end(), below);
  }
  const auto same = [](const auto* a, const auto* b) { return a->seq == b->seq; };
  items.erase(std::unique(items.begin(), items.end(), same), items.end());
  return items;
}

// The ids of names in one write, which may define new ones as long as there is room. The state's
// mutex is held as long as this lives.
class Naming {
 public:
  explicit Naming(const JobSeries& state) : state_(state) {}

  // nullopt: the run has the maximum number of names; the name is recorded.
  std::optional<uint32_t> IdOf(std::string_view name) {
    state_.mutex.AssertHeld();
    const auto at = state_.by_name.find(name);
    if (at != state_.by_name.end()) return state_.series[at->second].id;
    if (const auto known = defined_.find(name); known != defined_.end()) return known->second;
    if (state_.series.size() + defined_.size() >= kMaxSeriesNames) {
      refused_.insert(name);
      return std::nullopt;
    }
    const auto id = state_.next_id + static_cast<uint32_t>(defined_.size());
    defined_.emplace(name, id);
    return id;
  }
  const NewNames& defined() const { return defined_; }

  // What to report about the names that got no id.
  Status Refused() const {
    if (refused_.empty()) return Ok();
    const std::string first = Printable(refused_.begin()->substr(0, 200));
    return Fail(Error{ErrorCode::kInvalid,
                      refused_.size() == 1
                          ? fmt::format("the metric '{}' was not stored", first)
                          : fmt::format("the metrics '{}' and {} more were not stored", first,
                                        refused_.size() - 1),
                      "use one name and count by step, instead of numbers in names"}
                    .Why(fmt::format(
                        "the run has {} metric names already, as many as a run can have; points "
                        "of those names were stored",
                        kMaxSeriesNames))
                    .Id(std::string(kTooManyNames)));
  }

 private:
  const JobSeries& state_;
  NewNames defined_;
  std::set<std::string_view> refused_;
};

// Leaves in the blocks the points that are not stored yet and whose name is known or has room, with
// the store's ids. Returns how many there are.
size_t KeepFresh(const JobSeries& state, SentPoints& sent, Naming& naming) REQUIRES(state.mutex) {
  std::map<SeriesChannel, std::optional<uint64_t>> last;
  // By the sender's number; outer none: not looked up yet, inner none: refused.
  std::vector<std::optional<std::optional<uint32_t>>> ids(sent.names.size());
  size_t count = 0;
  for (auto& block : sent.blocks) {
    const SeriesChannel channel{block.attempt, block.host, block.rank, block.channel};
    const auto [known, first] = last.try_emplace(channel);
    auto& seq = known->second;
    if (const auto at = state.last_seq.find(channel); first && at != state.last_seq.end()) {
      seq = at->second;
    }
    std::erase_if(block.items, [&seq](const auto& item) { return seq && item.seq <= *seq; });
    if (block.items.empty()) continue;
    seq = block.items.back().seq;
    std::erase_if(block.items, [&](const auto& item) {
      auto& id = ids[item.name];
      if (!id) id = naming.IdOf(sent.names[item.name]);
      return !id->has_value();
    });
    for (auto& item : block.items) item.name = **ids[item.name];
    count += block.items.size();
  }
  std::erase_if(sent.blocks, [](const auto& block) { return block.items.empty(); });
  return count;
}

}  // namespace

void SeriesStore::Parts::MarkDirty(JobId job, const std::string& path, bool created) {
  const MutexLock lock(dirty_mutex);
  Dirty& entry = dirty[job];
  entry.path = path;
  entry.created |= created;
}

// Writes the blocks as frames, and only then adds them to the state.
Status SeriesStore::Parts::Write(JobId job, JobSeries& state, const NewNames& defined,
                                 std::vector<SeriesBlock>& blocks) {
  if (blocks.empty()) return Ok();
  if (state.length == 0) ATHANOR_CHECK_OK(MakeDirs(DirName(state.path)));
  std::string bytes;
  // Names before blocks: a torn tail may then leave a name without points, never the reverse.
  if (state.length == 0) AddHeaderFrame(bytes, job);
  for (const auto& [name, id] : defined) AddNameFrame(bytes, id, name);
  for (auto& block : blocks) {
    block.from = state.length + bytes.size();
    AddBlockFrame(bytes, block);
    block.to = state.length + bytes.size();
  }
  UniqueFd file = held.Take(job);
  if (auto wrote = AppendAt(file, state.path, state.length, bytes); !wrote.ok()) {
    // Something else changed the file: what is there now counts.
    const auto code = wrote.error().code;
    if (code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound) state.Forget();
    return wrote;
  }
  held.Hold(job, std::move(file));
  MarkDirty(job, state.path, state.length == 0);
  state.length += bytes.size();
  for (const auto& [name, id] : defined) state.Define(id, name);
  for (const auto& block : blocks) state.Add(block);
  state.Weigh();
  return Ok();
}

// `last` is the seq of the channel's last point.
Result<size_t> SeriesStore::Parts::Append(JobId job, JobSeries& state, const PointBatch& batch,
                                          std::optional<uint64_t> last) {
  const auto items = FreshItems(batch, last);
  const bool guessed = IsGuessed(batch.channel);
  Naming naming(state);
  std::vector<SeriesBlock> blocks;
  size_t count = 0;
  for (const auto* item : items) {
    const Point& point = item->point;
    if (guessed && state.IsLogged(point.name)) continue;
    const auto id = naming.IdOf(point.name);
    if (!id) continue;
    if (blocks.empty() || blocks.back().items.size() == kMaxBlockItems) {
      blocks.push_back({batch.attempt, batch.rank, batch.channel, {}, batch.host, 0, 0});
    }
    blocks.back().items.push_back({item->seq, *id, point.step, point.wall_ns, point.value});
    ++count;
  }
  ATHANOR_CHECK_OK(Write(job, state, naming.defined(), blocks));
  ATHANOR_CHECK_OK(naming.Refused());
  return count;
}

SeriesStore::SeriesStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SeriesStore::~SeriesStore() = default;

Result<std::unique_ptr<SeriesStore>> SeriesStore::Open(std::string dir, OnDamage on_damage,
                                                       size_t held_bytes) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  return std::unique_ptr<SeriesStore>(
      new SeriesStore(std::make_unique<Parts>(std::move(dir), std::move(on_damage), held_bytes)));
}

// With the state of the job, open and locked, which clang cannot tell a template's argument.
template <class Work>  // Result<size_t>(JobSeries&)
Result<size_t> SeriesStore::Parts::WithState(JobId job, Work work) {
  Result<size_t> done = [&]() -> Result<size_t> {
    const auto lease = jobs.Take(job);
    JobSeries& state = *lease;
    const MutexLock lock(state.mutex);
    ATHANOR_CHECK_OK(Open(job, state));
    return work(state);
  }();
  TrimIfMuch();
  return done;
}

Result<size_t> SeriesStore::Append(JobId job, const PointBatch& batch) {
  ATHANOR_CHECK_OK(CheckNames(batch));
  return parts_->WithState(job, [&](JobSeries& state) {
    state.mutex.AssertHeld();
    return parts_->Append(job, state, batch, state.LastOf(batch));
  });
}

Result<size_t> SeriesStore::AppendFrames(JobId job, std::string_view frames) {
  ATHANOR_TRY(auto sent, ReadSentPoints(frames));
  return parts_->WithState(job, [&](JobSeries& state) -> Result<size_t> {
    state.mutex.AssertHeld();
    Naming naming(state);
    const size_t count = KeepFresh(state, sent, naming);
    ATHANOR_CHECK_OK(parts_->Write(job, state, naming.defined(), sent.blocks));
    ATHANOR_CHECK_OK(naming.Refused());
    return count;
  });
}

Result<size_t> SeriesStore::Add(JobId job, PointBatch batch) {
  ATHANOR_CHECK_OK(CheckNames(batch));
  return parts_->WithState(job, [&](JobSeries& state) {
    state.mutex.AssertHeld();
    const auto last = state.LastOf(batch);
    uint64_t seq = last.value_or(0);
    for (auto& item : batch.items) item.seq = ++seq;
    return parts_->Append(job, state, batch, last);
  });
}

Status SeriesStore::Sync() {
  parts_->held.Clear();
  std::map<JobId, Parts::Dirty> dirty;
  std::vector<JobId> closed;
  {
    const MutexLock lock(parts_->dirty_mutex);
    dirty.swap(parts_->dirty);
    closed.swap(parts_->closed);
  }
  Status first_error;
  const auto failed = [&](JobId job, const Parts::Dirty& entry, Status status) {
    parts_->MarkDirty(job, entry.path, entry.created);
    if (first_error.ok()) first_error = std::move(status);
  };
  // All files first: that mostly writes the entries of their folders, too, which are then quick.
  std::map<std::string, std::vector<JobId>> folders;
  for (const auto& [job, entry] : dirty) {
    if (auto synced = SyncFileData(entry.path); !synced.ok()) {
      failed(job, entry, std::move(synced));
    } else if (entry.created) {
      folders[DirName(entry.path)].push_back(job);
    }
  }
  bool root_due = !folders.empty();  // the folders may be new themselves
  for (const auto& [folder, created] : folders) {
    Status synced = SyncFolder(folder);
    if (synced.ok() && std::exchange(root_due, false)) synced = SyncFolder(parts_->dir);
    if (synced.ok()) continue;
    root_due = true;
    for (const JobId job : created) failed(job, dirty.at(job), synced);
  }
  for (const auto& [job, entry] : dirty) parts_->KeepIndexIfDue(job);
  for (const JobId job : closed) {
    {
      const auto lease = parts_->jobs.Take(job);
      parts_->KeepIndexAtEnd(job, *lease);
    }
    parts_->jobs.Drop(job);
  }
  parts_->Trim();
  return first_error;
}

Status SeriesStore::Remove(JobId job) {
  const auto lease = parts_->jobs.Take(job);
  const MutexLock lock(lease->mutex);
  lease->Forget();
  (void)parts_->held.Take(job);
  for (const auto& path : {SeriesPath(parts_->dir, job), OldSeriesPath(parts_->dir, job)}) {
    ATHANOR_CHECK_OK(RemoveTree(IndexBeside(path)));
    ATHANOR_CHECK_OK(RemoveTree(path));
  }
  return Ok();
}

void SeriesStore::Close(JobId job) {
  const MutexLock lock(parts_->dirty_mutex);
  parts_->closed.push_back(job);
}

}  // namespace athanor
