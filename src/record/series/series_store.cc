#include "record/series/series_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/format.h"
#include "base/text.h"
#include "record/append_file.h"
#include "record/open_jobs.h"
#include "record/series/held_files.h"
#include "record/series/series_file.h"
#include "record/series/series_frames.h"
#include "record/series/series_index.h"
#include "record/series/series_merge.h"
#include "record/series/series_pyramid.h"

namespace athanor {
namespace {

constexpr size_t kIdleJobs = 256;
constexpr size_t kMaxNames = 100'000;
// Five digits of an id stand for nine hours: the folders stay small.
constexpr size_t kFolderDigits = 5;
constexpr uint64_t kIndexEvery = 1 << 20;        // bytes of growth
constexpr size_t kMostIndexBytes = 1u << 30;

using Channel = std::tuple<uint32_t, uint32_t, uint32_t>;  // attempt, rank, channel

struct Series {
  std::string name;
  uint32_t id = 0;  // by which new points name it
  RunningSummary summary;
  SeriesPyramid pyramid;

  void Add(const SeriesPoint& point, const Resumes& resumes, uint64_t from, uint64_t to) {
    summary.Add(point, resumes);
    pyramid.Add(point, from, to);
  }
};

// What is held in memory for one job.
struct JobSeries {
  std::mutex mutex;  // guards all below
  bool open = false;
  std::string path;     // of the file; set when it was opened
  uint64_t length = 0;  // of the file, as far as it is valid
  std::vector<Series> series;
  std::map<std::string, size_t, std::less<>> by_name;  // to `series`
  std::unordered_map<uint32_t, size_t> by_id;          // to `series`
  uint32_t next_id = 0;
  std::map<Channel, uint64_t> last_seq;
  Resumes resumes;       // that the summaries heed
  uint64_t indexed = 0;  // length that the index beside the file knows
  std::set<std::pair<uint64_t, uint64_t>> reported;  // damage: offset, bytes

  void Forget() {
    open = false;
    length = 0;
    series.clear();
    by_name.clear();
    by_id.clear();
    next_id = 0;
    last_seq.clear();
    resumes.clear();
    indexed = 0;
    reported.clear();
  }
  void Heed(const Resumes& now) {
    for (auto& one : series) one.summary.Heed(resumes, now);
    resumes = now;
  }
  // The seq of the last point of the batch's channel.
  std::optional<uint64_t> LastOf(const PointBatch& batch) const {
    const auto at = last_seq.find({batch.attempt, batch.rank, batch.channel});
    return at == last_seq.end() ? std::nullopt : std::optional(at->second);
  }
  // Whether a guess of this name would never count.
  bool IsLogged(std::string_view name) const {
    const auto at = by_name.find(name);
    return at != by_name.end() && series[at->second].summary.state().logged;
  }
  // An id that was defined before keeps its first name.
  void Define(uint32_t id, std::string_view name) {
    if (by_id.contains(id)) return;
    auto at = by_name.find(name);
    if (at == by_name.end()) {
      at = by_name.emplace(name, series.size()).first;
      series.push_back({std::string(name), id, {}, {}});
    }
    by_id.emplace(id, at->second);
    next_id = std::max(next_id, id + 1);
  }
};

SeriesPoint PointOf(const SeriesBlock& block, const SeriesBlock::Item& item) {
  return {item.step, item.wall_ns, item.value, block.attempt, block.rank, false,
          IsGuessed(block.channel)};
}

using PointsByName = std::map<std::string, std::vector<SeriesPoint>, std::less<>>;

// The points of some names, in order of arrival; names are found as the file is read.
class Collector {
 public:
  explicit Collector(PointsByName& wanted) : wanted_(wanted) {}
  SeriesVisitor Visitor() {
    SeriesVisitor visitor;
    visitor.name = [this](uint32_t id, std::string_view name) {
      const auto at = wanted_.find(name);
      points_.try_emplace(id, at == wanted_.end() ? nullptr : &at->second);
    };
    visitor.block = [this](const SeriesBlock& block) {
      for (const auto& item : block.items) {
        const auto at = points_.find(item.name);
        if (at != points_.end() && at->second) at->second->push_back(PointOf(block, item));
      }
    };
    return visitor;
  }

 private:
  PointsByName& wanted_;
  std::unordered_map<uint32_t, std::vector<SeriesPoint>*> points_;
};

Status CheckNames(const PointBatch& batch) {
  for (const auto& item : batch.items) {
    const auto& name = item.point.name;
    if (!name.empty() && name.size() <= kMaxSeriesName) continue;
    Error error;
    error.code = ErrorCode::kInvalid;
    error.what = name.empty() ? "a metric has an empty name"
                              : "a metric's name is too long: " + Printable(name.substr(0, 60));
    error.why = fmt::format("it has {} bytes; 1 to {} can be kept", name.size(), kMaxSeriesName);
    error.hint = "shorten the name in the script, or in the `metrics` of the job file";
    return Fail(std::move(error));
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

// Names that a write defines, with their new ids.
using NewNames = std::map<std::string_view, uint32_t>;

uint32_t IdOf(const JobSeries& state, std::string_view name, NewNames& defined) {
  const auto at = state.by_name.find(name);
  if (at != state.by_name.end()) return state.series[at->second].id;
  return defined.try_emplace(name, state.next_id + static_cast<uint32_t>(defined.size()))
      .first->second;
}

// Leaves in the blocks what is not stored yet, with the store's ids for names; how many that are.
size_t KeepFresh(const JobSeries& state, SentPoints& sent, NewNames& defined) {
  std::map<Channel, std::optional<uint64_t>> last;
  std::vector<std::optional<uint32_t>> ids(sent.names.size());
  size_t count = 0;
  for (auto& block : sent.blocks) {
    const Channel channel{block.attempt, block.rank, block.channel};
    const auto [known, first] = last.try_emplace(channel);
    auto& seq = known->second;
    if (const auto at = state.last_seq.find(channel); first && at != state.last_seq.end()) {
      seq = at->second;
    }
    std::erase_if(block.items, [&seq](const auto& item) { return seq && item.seq <= *seq; });
    if (block.items.empty()) continue;
    seq = block.items.back().seq;
    count += block.items.size();
    for (auto& item : block.items) {
      auto& id = ids[item.name];
      if (!id) id = IdOf(state, sent.names[item.name], defined);
      item.name = *id;
    }
  }
  std::erase_if(sent.blocks, [](const auto& block) { return block.items.empty(); });
  return count;
}

// Then the sample is made from the points themselves.
bool IsShort(const SamplePlan& plan, const SampleQuery& query) {
  return plan.points <= std::max<uint64_t>(kFewPoints, 2 * query.width);
}

}  // namespace

struct SeriesStore::Parts {
  Parts(std::string folder, OnDamage report)
      : dir(std::move(folder)), on_damage(std::move(report)), jobs(kIdleJobs) {}

  const std::string dir;
  const OnDamage on_damage;
  OpenJobs<JobSeries> jobs;

  HeldFiles held;
  std::mutex dirty_mutex;
  std::map<JobId, bool> dirty;  // whether the file is new

  std::string FolderOf(JobId job) const {
    return JoinPath(dir, job.ToString().substr(0, kFolderDigits));
  }
  std::string PathOf(JobId job) const { return FolderOf(job) + "/" + job.ToString() + ".series"; }

  void Report(JobId job, std::string what, std::string why) const {
    if (!on_damage) return;
    Error error;
    error.code = ErrorCode::kCorrupt;
    error.what = fmt::format("metrics of job {}: {}", job.ToString(), what);
    error.why = std::move(why);
    error.where = PathOf(job);
    on_damage(job, error);
  }

  void ReportDamage(JobId job, JobSeries& state, const SeriesScan& scan) const {
    for (const auto& damage : scan.damage) {
      if (!state.reported.emplace(damage.offset, damage.bytes).second) continue;
      Report(job, fmt::format("{} bytes were damaged and are left out", damage.bytes),
             fmt::format("the checksum at byte {} is wrong", damage.offset));
    }
  }

  std::string IndexOf(JobId job) const { return FolderOf(job) + "/" + job.ToString() + ".index"; }

  Status Open(JobId job, JobSeries& state) const;
  void TakeIndex(JobId job, JobSeries& state, int fd, uint64_t size) const;
  void KeepIndex(JobId job, JobSeries& state) const;
  void KeepIndexIfDue(JobId job);
  Status Load(JobId job, JobSeries& state, int fd, uint64_t size) const;
  Status Store(JobId job, JobSeries& state, const PointBatch& batch,
               const std::vector<const PointBatch::Item*>& items);
  Result<size_t> Append(JobId job, JobSeries& state, const PointBatch& batch,
                        std::optional<uint64_t> last);
  Status Write(JobId job, JobSeries& state, const NewNames& defined,
               std::vector<SeriesBlock>& blocks);
  Result<std::vector<SeriesPoint>> Arrived(JobId job, std::string_view name);
  Result<std::vector<SeriesChunk>> Chunks(JobId job, std::string_view name);  // none of a name unknown
  Status ReadChunks(JobId job, std::string_view name, const std::vector<SeriesChunk>& chunks,
                    std::vector<SeriesPoint>& points);
  Status Collect(JobId job, JobSeries& state, uint64_t length, PointsByName& wanted) const;
  Status Renew(JobId job, JobSeries& state, uint64_t length,
               std::map<std::string, RunningSummary, std::less<>>& made) const;
  void MarkDirty(JobId job, bool created) {
    const std::lock_guard lock(dirty_mutex);
    dirty[job] |= created;
  }
};

// Brings the state to what the file holds. Needs the state's mutex.
Status SeriesStore::Parts::Open(JobId job, JobSeries& state) const {
  if (state.open) return Ok();
  state.Forget();
  state.path = PathOf(job);
  UniqueFd fd(::open(state.path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno != ENOENT) return FailErrno("open " + state.path, errno);
  if (fd) {
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return FailErrno("stat " + state.path, errno);
    if (auto loaded = Load(job, state, fd.get(), static_cast<uint64_t>(info.st_size));
        !loaded.ok()) {
      state.Forget();
      return loaded;
    }
  }
  state.open = true;
  return Ok();
}

Status SeriesStore::Parts::Load(JobId job, JobSeries& state, int fd, uint64_t size) const {
  JobId owner = job;
  uint64_t nameless = 0;
  SeriesVisitor visitor;
  visitor.header = [&](JobId named) { owner = named; };
  visitor.name = [&](uint32_t id, std::string_view name) { state.Define(id, name); };
  visitor.block = [&](const SeriesBlock& block) {
    for (const auto& item : block.items) {
      const auto at = state.by_id.find(item.name);
      if (at == state.by_id.end()) {
        ++nameless;
        // Its definition was damaged: the id must not get another meaning.
        state.next_id = std::max(state.next_id, item.name + 1);
        continue;
      }
      state.series[at->second].Add(PointOf(block, item), state.resumes, block.from, block.to);
    }
    auto& last = state.last_seq[{block.attempt, block.rank, block.channel}];
    last = std::max(last, block.items.back().seq);
  };
  TakeIndex(job, state, fd, size);
  ATHANOR_TRY(const SeriesScan scan, ScanSeries(fd, state.indexed, size, visitor));
  if (owner != job) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{} holds the metrics of job {}", PathOf(job), owner.ToString()));
  }
  ReportDamage(job, state, scan);
  if (nameless > 0) {
    Report(job, fmt::format("{} points cannot be named and are left out", nameless),
           "the record with their name was damaged");
  }
  if (scan.end < size) {
    if (::ftruncate(fd, static_cast<off_t>(scan.end)) != 0) {
      return FailErrno("cut the torn tail of " + PathOf(job), errno);
    }
    Report(job, fmt::format("the last {} bytes were cut off", size - scan.end),
           fmt::format("the record at byte {} is not whole", scan.end));
  }
  state.length = scan.end;
  return Ok();
}

// The checksum that ties an index to its file.
Result<uint32_t> TailCrc(int fd, uint64_t length) {
  const uint64_t size = std::min<uint64_t>(length, kIndexTail);
  ATHANOR_TRY(const std::string tail, ReadAt(fd, length - size, static_cast<size_t>(size)));
  return Crc32c(tail);
}

// Fills an empty state from the index beside the file, if that fits; else leaves it empty.
void SeriesStore::Parts::TakeIndex(JobId job, JobSeries& state, int fd, uint64_t size) const {
  const auto bytes = ReadFile(IndexOf(job), kMostIndexBytes);
  if (!bytes) return;
  auto index = DecodeIndex(*bytes);
  if (!index || index->job != job || index->length > size) return;
  const auto crc = TailCrc(fd, index->length);
  if (!crc || *crc != index->tail_crc) return;
  for (auto& kept : index->series) {
    state.by_name.emplace(kept.name, state.series.size());
    for (const uint32_t id : kept.ids) state.by_id.emplace(id, state.series.size());
    state.series.push_back({kept.name, kept.ids.front(), RunningSummary(kept.summary), {}});
    state.series.back().pyramid.Take(std::move(kept.chunks));
  }
  state.next_id = index->next_id;
  state.last_seq = std::move(index->last_seq);
  state.resumes = std::move(index->resumes);
  state.indexed = index->length;
}

// Needs the state's mutex. An index that cannot be kept is none: the file says it all.
void SeriesStore::Parts::KeepIndex(JobId job, JobSeries& state) const {
  const auto fd = OpenToRead(PathOf(job));
  const auto crc = fd ? TailCrc(fd->get(), state.length) : Result<uint32_t>(tl::unexpected(fd.error()));
  if (!crc) return;
  SeriesIndex index;
  index.job = job;
  index.length = state.length;
  index.tail_crc = *crc;
  index.next_id = state.next_id;
  index.last_seq = state.last_seq;
  index.resumes = state.resumes;
  for (const auto& series : state.series) {
    index.series.push_back({series.name, {series.id}, series.summary.state(),
                            series.pyramid.chunks()});
  }
  for (const auto& [id, at] : state.by_id) {
    if (id != index.series[at].ids.front()) index.series[at].ids.push_back(id);
  }
  if (ReplaceFile(IndexOf(job), EncodeIndex(index)).ok()) state.indexed = state.length;
}

// A file that has grown much is indexed anew, so that the next start reads little of it.
void SeriesStore::Parts::KeepIndexIfDue(JobId job) {
  const auto lease = jobs.Take(job);
  const std::lock_guard lock(lease->mutex);
  if (!lease->open || !lease->reported.empty()) return;
  const uint64_t fresh = lease->length - lease->indexed;
  if (fresh >= std::max(kIndexEvery, lease->indexed / 4)) KeepIndex(job, *lease);
}

Status SeriesStore::Parts::Store(JobId job, JobSeries& state, const PointBatch& batch,
                                 const std::vector<const PointBatch::Item*>& items) {
  NewNames defined;
  std::vector<SeriesBlock> blocks;
  for (const auto* item : items) {
    const Point& point = item->point;
    if (blocks.empty() || blocks.back().items.size() == kMaxBlockItems) {
      blocks.push_back({batch.attempt, batch.rank, batch.channel, {}, 0, 0});
    }
    blocks.back().items.push_back(
        {item->seq, IdOf(state, point.name, defined), point.step, point.wall_ns, point.value});
  }
  return Write(job, state, defined, blocks);
}

// Writes the blocks as frames, and only then takes them into the state.
Status SeriesStore::Parts::Write(JobId job, JobSeries& state, const NewNames& defined,
                                 std::vector<SeriesBlock>& blocks) {
  if (state.series.size() + defined.size() > kMaxNames) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("job {} has more than {} metric names", job.ToString(), kMaxNames),
                "use one name and count by step, instead of numbers in names");
  }
  std::string bytes;
  if (state.length == 0) AddHeaderFrame(bytes, job);
  for (const auto& [name, id] : defined) AddNameFrame(bytes, id, name);
  for (auto& block : blocks) {
    block.from = state.length + bytes.size();
    AddBlockFrame(bytes, block);
    block.to = state.length + bytes.size();
  }
  UniqueFd file = held.Take(job);
  if (auto wrote = AppendAt(file, state.path, state.length, bytes); !wrote.ok()) {
    // Somebody changed the file behind us: what is there now counts.
    const auto code = wrote.error().code;
    if (code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound) state.Forget();
    return wrote;
  }
  held.Hold(job, std::move(file));
  MarkDirty(job, state.length == 0);
  state.length += bytes.size();
  for (const auto& [name, id] : defined) state.Define(id, name);
  for (const auto& block : blocks) {
    for (const auto& item : block.items) {
      state.series[state.by_id.at(item.name)].Add(PointOf(block, item), state.resumes, block.from,
                                                  block.to);
    }
    state.last_seq[{block.attempt, block.rank, block.channel}] = block.items.back().seq;
  }
  return Ok();
}

// Needs the state's mutex. `last` is the seq of the channel's last point.
Result<size_t> SeriesStore::Parts::Append(JobId job, JobSeries& state, const PointBatch& batch,
                                          std::optional<uint64_t> last) {
  auto items = FreshItems(batch, last);
  if (IsGuessed(batch.channel)) {
    std::erase_if(items, [&state](const auto* item) { return state.IsLogged(item->point.name); });
  }
  if (items.empty()) return size_t{0};
  if (state.length == 0) ATHANOR_CHECK_OK(MakeDirs(FolderOf(job)));
  ATHANOR_CHECK_OK(Store(job, state, batch, items));
  return items.size();
}

SeriesStore::SeriesStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SeriesStore::~SeriesStore() = default;

Result<std::unique_ptr<SeriesStore>> SeriesStore::Open(std::string dir, OnDamage on_damage) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  return std::unique_ptr<SeriesStore>(
      new SeriesStore(std::make_unique<Parts>(std::move(dir), std::move(on_damage))));
}

Result<size_t> SeriesStore::Append(JobId job, const PointBatch& batch) {
  ATHANOR_CHECK_OK(CheckNames(batch));
  const auto lease = parts_->jobs.Take(job);
  const std::lock_guard lock(lease->mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, *lease));
  return parts_->Append(job, *lease, batch, lease->LastOf(batch));
}

Result<size_t> SeriesStore::AppendFrames(JobId job, std::string_view frames) {
  ATHANOR_TRY(auto sent, ReadSentPoints(frames));
  const auto lease = parts_->jobs.Take(job);
  JobSeries& state = *lease;
  const std::lock_guard lock(state.mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, state));
  NewNames defined;
  const size_t count = KeepFresh(state, sent, defined);
  if (count == 0) return size_t{0};
  if (state.length == 0) ATHANOR_CHECK_OK(MakeDirs(parts_->FolderOf(job)));
  ATHANOR_CHECK_OK(parts_->Write(job, state, defined, sent.blocks));
  return count;
}

Result<size_t> SeriesStore::Add(JobId job, PointBatch batch) {
  ATHANOR_CHECK_OK(CheckNames(batch));
  const auto lease = parts_->jobs.Take(job);
  const std::lock_guard lock(lease->mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, *lease));
  const auto last = lease->LastOf(batch);
  uint64_t seq = last.value_or(0);
  for (auto& item : batch.items) item.seq = ++seq;
  return parts_->Append(job, *lease, batch, last);
}

Status SeriesStore::Sync() {
  parts_->held.Clear();
  std::map<JobId, bool> dirty;
  {
    const std::lock_guard lock(parts_->dirty_mutex);
    dirty.swap(parts_->dirty);
  }
  Status first_error;
  std::set<std::string> folders;
  for (const auto& [job, created] : dirty) {
    Status synced = SyncFileData(parts_->PathOf(job));
    parts_->KeepIndexIfDue(job);
    if (synced.ok() && created && folders.insert(parts_->FolderOf(job)).second) {
      synced = SyncFolder(parts_->FolderOf(job));
      if (synced.ok()) synced = SyncFolder(parts_->dir);
    }
    if (synced.ok()) continue;
    parts_->MarkDirty(job, created);
    folders.erase(parts_->FolderOf(job));
    if (first_error.ok()) first_error = std::move(synced);
  }
  return first_error;
}

// Reads the points of `wanted` up to `length`, without the state's mutex: what is
// below a length that was once valid never changes.
Status SeriesStore::Parts::Collect(JobId job, JobSeries& state, uint64_t length,
                                   PointsByName& wanted) const {
  ATHANOR_TRY(const UniqueFd fd, OpenToRead(PathOf(job)));
  Collector collector(wanted);
  ATHANOR_TRY(const SeriesScan scan, ScanSeries(fd.get(), 0, length, collector.Visitor()));
  const std::lock_guard lock(state.mutex);
  ReportDamage(job, state, scan);
  if (scan.end < length && state.reported.emplace(scan.end, length - scan.end).second) {
    Report(job, fmt::format("the last {} bytes were damaged and are left out", length - scan.end),
           fmt::format("the checksum at byte {} is wrong", scan.end));
  }
  return Ok();
}

Result<std::vector<SeriesSummary>> SeriesStore::Summaries(JobId job,
                                                          const Resumes& resumes) const {
  const auto lease = parts_->jobs.Take(job);
  JobSeries& state = *lease;
  std::vector<SeriesSummary> summaries;
  PointsByName stale;
  uint64_t length = 0;
  {
    const std::lock_guard lock(state.mutex);
    ATHANOR_CHECK_OK(parts_->Open(job, state));
    length = state.length;
    if (state.resumes != resumes) state.Heed(resumes);
    for (const auto& [name, at] : state.by_name) {
      const RunningSummary& summary = state.series[at].summary;
      if (summary.stale()) stale.emplace(name, std::vector<SeriesPoint>());
      summaries.push_back(summary.value());
      summaries.back().name = name;
    }
  }
  if (!stale.empty()) {
    ATHANOR_CHECK_OK(parts_->Collect(job, state, length, stale));
    std::map<std::string, RunningSummary, std::less<>> made;
    for (auto& [name, points] : stale) {
      made.emplace(name, RunningSummary::Of(std::move(points), resumes));
    }
    for (auto& summary : summaries) {
      const auto at = made.find(summary.name);
      if (at == made.end()) continue;
      summary = at->second.value();
      summary.name = at->first;
    }
    const std::lock_guard lock(state.mutex);
    if (state.resumes == resumes) ATHANOR_CHECK_OK(parts_->Renew(job, state, length, made));
  }
  std::erase_if(summaries, [](const auto& summary) { return summary.count == 0; });
  return summaries;
}

// Puts summaries that were made of the first `length` bytes into the state, after
// adding what was appended meanwhile. Needs the state's mutex.
Status SeriesStore::Parts::Renew(JobId job, JobSeries& state, uint64_t length,
                                 std::map<std::string, RunningSummary, std::less<>>& made) const {
  if (!state.open || state.length < length) return Ok();
  if (state.length > length) {
    ATHANOR_TRY(const UniqueFd fd, OpenToRead(PathOf(job)));
    SeriesVisitor visitor;
    visitor.block = [&](const SeriesBlock& block) {
      for (const auto& item : block.items) {
        const auto at = state.by_id.find(item.name);
        if (at == state.by_id.end()) continue;
        const auto summary = made.find(state.series[at->second].name);
        if (summary != made.end()) summary->second.Add(PointOf(block, item), state.resumes);
      }
    };
    ATHANOR_CHECK_OK(ScanSeries(fd.get(), length, state.length, visitor));
  }
  for (auto& [name, summary] : made) {
    const auto at = state.by_name.find(name);
    if (at != state.by_name.end()) state.series[at->second].summary = std::move(summary);
  }
  return Ok();
}

Result<std::vector<SeriesPoint>> SeriesStore::Read(JobId job, std::string_view name,
                                                   bool with_abandoned,
                                                   const Resumes& resumes) const {
  ATHANOR_TRY(auto points, parts_->Arrived(job, name));
  return MergePoints(std::move(points), with_abandoned, resumes);
}

Result<std::vector<SeriesPoint>> SeriesStore::History(JobId job, std::string_view name,
                                                      const Resumes& resumes) const {
  ATHANOR_TRY(auto points, parts_->Arrived(job, name));
  return KeepAllPoints(std::move(points), resumes);
}

Result<std::optional<std::vector<SeriesPoint>>> SeriesStore::ShortHistory(
    JobId job, std::string_view name, uint64_t most, const Resumes& resumes) const {
  ATHANOR_TRY(auto chunks, parts_->Chunks(job, name));
  KeepSpeakers(chunks);
  uint64_t count = 0;
  for (const auto& chunk : chunks) count += chunk.count;
  std::optional<std::vector<SeriesPoint>> history;
  if (count > most) return history;
  std::vector<SeriesPoint> points;
  ATHANOR_CHECK_OK(parts_->ReadChunks(job, name, chunks, points));
  history = KeepAllPoints(std::move(points), resumes);
  return history;
}

std::optional<std::vector<SeriesPoint>> SeriesStore::SampleAtHand(JobId job, std::string_view name,
                                                                  const SampleQuery& query,
                                                                  const Resumes& resumes) const {
  std::vector<SeriesChunk> chunks;
  {
    const auto lease = parts_->jobs.Take(job);
    const std::unique_lock lock(lease->mutex, std::try_to_lock);
    if (!lock || !lease->open) return std::nullopt;
    const auto at = lease->by_name.find(name);
    if (at == lease->by_name.end()) return std::nullopt;
    chunks = lease->series[at->second].pyramid.chunks();
  }
  const SamplePlan plan = PlanSample(std::move(chunks), query, resumes);
  if (!plan.by_chunks || !plan.partly.empty() || IsShort(plan, query)) return std::nullopt;
  return ThinChunks(plan.whole, {}, query.width);
}

Result<std::vector<SeriesPoint>> SeriesStore::Sample(JobId job, std::string_view name,
                                                     const SampleQuery& query,
                                                     const Resumes& resumes) const {
  ATHANOR_TRY(auto chunks, parts_->Chunks(job, name));
  SamplePlan plan = PlanSample(std::move(chunks), query, resumes);
  if (!plan.by_chunks) {
    ATHANOR_TRY(auto points, Read(job, name, false, resumes));
    std::erase_if(points, [&](const SeriesPoint& p) {
      return p.step ? (query.from_step && *p.step < *query.from_step) ||
                          (query.to_step && *p.step > *query.to_step)
                    : query.from_step || query.to_step;
    });
    return Thin(points, query.width);
  }
  if (IsShort(plan, query)) {
    std::move(plan.whole.begin(), plan.whole.end(), std::back_inserter(plan.partly));
    plan.whole.clear();
  }
  std::vector<SeriesPoint> read;
  ATHANOR_CHECK_OK(parts_->ReadChunks(job, name, plan.partly, read));
  KeepCounted(plan, query, read);
  return ThinChunks(plan.whole, std::move(read), query.width);
}

// The points of a name in the blocks of some of its chunks, in order of arrival.
Status SeriesStore::Parts::ReadChunks(JobId job, std::string_view name,
                                      const std::vector<SeriesChunk>& chunks,
                                      std::vector<SeriesPoint>& points) {
  if (chunks.empty()) return Ok();
  std::set<uint32_t> ids;
  {
    const auto lease = jobs.Take(job);
    const std::lock_guard lock(lease->mutex);
    ATHANOR_CHECK_OK(Open(job, *lease));
    const auto at = lease->by_name.find(name);
    for (const auto& [id, series] : lease->by_id) {
      if (at != lease->by_name.end() && series == at->second) ids.insert(id);
    }
  }
  // Neighbours may share blocks: each block is read once.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& chunk : chunks) ranges.emplace_back(chunk.from, chunk.to);
  std::sort(ranges.begin(), ranges.end());
  ATHANOR_TRY(const UniqueFd fd, OpenToRead(PathOf(job)));
  SeriesVisitor visitor;
  visitor.block = [&](const SeriesBlock& block) {
    for (const auto& item : block.items) {
      if (ids.contains(item.name)) points.push_back(PointOf(block, item));
    }
  };
  uint64_t done = 0;
  for (auto [from, to] : ranges) {
    from = std::max(from, done);
    if (from >= to) continue;
    ATHANOR_CHECK_OK(ScanSeries(fd.get(), from, to, visitor));
    done = to;
  }
  return Ok();
}

// All points of a name that there are, in order of arrival.
Result<std::vector<SeriesChunk>> SeriesStore::Parts::Chunks(JobId job, std::string_view name) {
  const auto lease = jobs.Take(job);
  const std::lock_guard lock(lease->mutex);
  ATHANOR_CHECK_OK(Open(job, *lease));
  const auto at = lease->by_name.find(name);
  if (at == lease->by_name.end()) return std::vector<SeriesChunk>();
  return lease->series[at->second].pyramid.chunks();
}

Result<std::vector<SeriesPoint>> SeriesStore::Parts::Arrived(JobId job, std::string_view name) {
  const auto lease = jobs.Take(job);
  JobSeries& state = *lease;
  PointsByName wanted;
  auto& points = wanted.emplace(name, std::vector<SeriesPoint>()).first->second;
  std::vector<std::string> names;
  uint64_t length = 0;
  {
    const std::lock_guard lock(state.mutex);
    ATHANOR_CHECK_OK(Open(job, state));
    length = state.length;
    if (!state.by_name.contains(name)) {
      for (const auto& series : state.series) names.push_back(series.name);
    }
  }
  if (length > 0 && names.empty()) {
    ATHANOR_CHECK_OK(Collect(job, state, length, wanted));
  }
  if (!points.empty()) return std::move(points);
  Error error;
  error.code = ErrorCode::kNotFound;
  error.what = fmt::format("no metric '{}' in this job", Printable(name.substr(0, 200)));
  error.id = "ATH-R0007";
  error.why = length == 0     ? "it has no metrics at all"
              : names.empty() ? "its records were damaged"
                              : fmt::format("it has {} others", names.size());
  error.hint = "ath metrics " + job.ToString();
  if (const auto near = Nearest(name, names)) {
    error.hint = fmt::format("did you mean: ath metrics {} {}", job.ToString(), ShellQuote(*near));
  }
  return Fail(std::move(error));
}

Status SeriesStore::Remove(JobId job) {
  const auto lease = parts_->jobs.Take(job);
  const std::lock_guard lock(lease->mutex);
  lease->Forget();
  (void)parts_->held.Take(job);
  ATHANOR_CHECK_OK(RemoveTree(parts_->IndexOf(job)));
  return RemoveTree(parts_->PathOf(job));
}

void SeriesStore::Close(JobId job) {
  parts_->KeepIndexIfDue(job);
  parts_->jobs.Drop(job);
}

}  // namespace athanor
