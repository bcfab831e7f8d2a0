#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/exec/mutex.h"
#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "record/append_file.h"
#include "record/series/series_parts.h"
#include "record/series/series_places.h"

namespace athanor {
namespace {

constexpr uint64_t kIndexEvery = 128 << 10;  // bytes of growth
constexpr uint64_t kWorthIndex = 32 << 10;   // of a file that is put away
constexpr size_t kMostIndexBytes = 1u << 30;

// Takes what a scan finds into a state, whose mutex is held, or which nobody else has.
struct Filler {
  JobSeries& state;
  JobId owner;
  uint64_t nameless = 0;

  SeriesVisitor Visitor() {
    SeriesVisitor visitor;
    visitor.header = [this](JobId named) { owner = named; };
    visitor.name = [this](uint32_t id, std::string_view name) {
      state.mutex.AssertHeld();
      state.Define(id, name);
    };
    visitor.block = [this](const SeriesBlock& block) { Add(block); };
    return visitor;
  }

  void Add(const SeriesBlock& block) {
    state.mutex.AssertHeld();
    const auto named = [this](const auto& item)
                           REQUIRES(state.mutex) { return state.by_id.contains(item.name); };
    if (std::all_of(block.items.begin(), block.items.end(), named)) return state.Add(block);
    SeriesBlock rest = block;
    std::erase_if(rest.items, [&](const auto& item) REQUIRES(state.mutex) {
      if (named(item)) return false;
      ++nameless;
      // Its definition was damaged: the id must not get another meaning.
      state.next_id = std::max(state.next_id, item.name + 1);
      return true;
    });
    if (!rest.items.empty()) state.Add(rest);
    auto& last = state.last_seq[{block.attempt, block.host, block.rank, block.channel}];
    last = std::max(last, block.items.back().seq);
  }
};

// The checksum that ties an index to its file.
Result<uint32_t> TailCrc(int fd, uint64_t length) {
  const uint64_t size = std::min<uint64_t>(length, kIndexTail);
  ATHANOR_TRY(const std::string tail, ReadAt(fd, length - size, static_cast<size_t>(size)));
  return Crc32c(tail);
}

}  // namespace

SeriesStore::Parts::Parts(std::string folder, OnDamage report, size_t most)
    : dir(std::move(folder)),
      on_damage(std::move(report)),
      held_bytes(most),
      jobs(held_bytes, [](const JobSeries& state) { return state.bytes.load(); }) {}

void SeriesStore::Parts::Report(JobId job, const std::string& path, std::string what,
                                std::string why) const {
  if (!on_damage) return;
  on_damage(job,
            Error{ErrorCode::kCorrupt, fmt::format("metrics of run {}: {}", job.ToString(), what)}
                .Why(std::move(why))
                .Where(path));
}

void SeriesStore::Parts::ReportDamage(JobId job, JobSeries& state, const SeriesScan& scan) const {
  for (const auto& damage : scan.damage) {
    if (!state.reported.emplace(damage.offset, damage.bytes).second) continue;
    Report(job, state.path, fmt::format("{} bytes were damaged and are left out", damage.bytes),
           fmt::format("the checksum at byte {} is wrong", damage.offset));
  }
}

void SeriesStore::Parts::ReportShort(JobId job, JobSeries& state, const SeriesScan& scan,
                                     uint64_t to) const {
  ReportDamage(job, state, scan);
  if (scan.end >= to || !state.reported.emplace(scan.end, to - scan.end).second) return;
  Report(job, state.path, fmt::format("{} bytes were damaged and are left out", to - scan.end),
         fmt::format("the checksum at byte {} is wrong", scan.end));
}

Status SeriesStore::Parts::Open(JobId job, JobSeries& state) const {
  if (state.open) return Ok();
  state.Forget();
  UniqueFd fd;
  for (const bool old : {false, true}) {
    state.path = old ? OldSeriesPath(dir, job) : SeriesPath(dir, job);
    fd = UniqueFd(::open(state.path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd && errno != ENOENT) return FailErrno("open " + state.path, errno);
    if (fd) break;
  }
  if (!fd) state.path = SeriesPath(dir, job);
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
  state.Weigh();
  return Ok();
}

Status SeriesStore::Parts::Load(JobId job, JobSeries& state, int fd, uint64_t size) const {
  TakeIndex(job, state, fd, size);
  Filler filler{state, job};
  ATHANOR_TRY(const SeriesScan scan, ScanSeries(fd, state.indexed, size, filler.Visitor()));
  if (filler.owner != job) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{} holds the metrics of run {}", state.path, filler.owner.ToString()));
  }
  ReportDamage(job, state, scan);
  if (filler.nameless > 0) {
    Report(job, state.path,
           fmt::format("{} points cannot be named and are left out", filler.nameless),
           "the record with their name was damaged");
  }
  if (scan.end < size) {
    if (::ftruncate(fd, static_cast<off_t>(scan.end)) != 0) {
      return FailErrno("cut the torn tail of " + state.path, errno);
    }
    Report(job, state.path, fmt::format("the last {} bytes were cut off", size - scan.end),
           fmt::format("the record at byte {} is not whole", scan.end));
  }
  state.length = scan.end;
  return Ok();
}

// Fills an empty state from the index next to the file, if that matches; otherwise leaves it empty.
void SeriesStore::Parts::TakeIndex(JobId job, JobSeries& state, int fd, uint64_t size) const {
  const auto bytes = ReadFile(IndexBeside(state.path), kMostIndexBytes);
  if (!bytes) return;
  auto index = DecodeIndex(*bytes);
  if (!index || index->job != job || index->length > size) return;
  const auto crc = TailCrc(fd, index->length);
  if (!crc || *crc != index->tail_crc) return;
  state.Take(std::move(*index));
  state.index_bytes = bytes->size();
}

// Reads without the lock, into a state of its own, so that appends go on; then takes what was
// appended meanwhile with the lock. If the job was dropped from memory in between (its epoch is
// another), or somebody else was quicker, it looks again. Clang's analysis cannot follow that the
// caller's lock is released and taken again; here and in KeepIndex.
Status SeriesStore::Parts::Outline(JobId job, JobSeries& state, Lock& lock) const UNCHECKED_LOCKS {
  while (!state.outlined) {
    JobSeries made;
    made.path = state.path;
    const uint64_t length = state.length;
    const uint64_t epoch = state.epoch;
    Filler filler{made, job};
    UniqueFd fd;
    SeriesScan scan;
    // Bytes below a length that was once valid never change.
    lock.unlock();
    const Status read = [&]() -> Status {
      made.mutex.AssertHeld();  // nobody else has it
      ATHANOR_TRY(fd, OpenToRead(made.path));
      TakeIndex(job, made, fd.get(), length);
      ATHANOR_TRY(scan, ScanSeries(fd.get(), made.indexed, length, filler.Visitor()));
      return Ok();
    }();
    lock.lock();
    ATHANOR_CHECK_OK(Open(job, state));
    if (state.epoch != epoch || state.outlined) continue;
    ATHANOR_CHECK_OK(read);
    ReportShort(job, state, scan, length);
    if (state.length > length) {
      ATHANOR_TRY(scan, ScanSeries(fd.get(), length, state.length, filler.Visitor()));
      ReportShort(job, state, scan, state.length);
    }
    state.TakeOutline(made);
    state.Weigh();
  }
  return Ok();
}

void SeriesStore::Parts::KeepIndex(JobId job, JobSeries& state, Lock& lock) const UNCHECKED_LOCKS {
  // None for a damaged file: the next opening would then not see the damage, nor report it.
  const bool thin = !state.outlined;
  if (!Outline(job, state, lock).ok() || !state.reported.empty() || state.length == 0) return;
  SeriesIndex index = state.Index(job);
  if (thin) {
    state.DropOutline();
    state.Weigh();
  }
  const uint64_t epoch = state.epoch;
  const std::string path = state.path;
  lock.unlock();
  uint64_t size = 0;
  const Status kept = [&]() -> Status {
    ATHANOR_TRY(const UniqueFd fd, OpenToRead(path));
    ATHANOR_TRY(index.tail_crc, TailCrc(fd.get(), index.length));
    const std::string bytes = EncodeIndex(index);
    size = bytes.size();
    return ReplaceFile(IndexBeside(path), bytes);
  }();
  lock.lock();
  if (state.epoch != epoch) {
    // The file was removed, or replaced, meanwhile.
    (void)RemoveTree(IndexBeside(path));
  } else if (kept.ok()) {
    state.indexed = std::max(state.indexed, index.length);
    state.index_bytes = size;
  }
}

// So that little is read when the job is opened again. Due once the file has grown by a quarter and
// by the size of the index: writing it then costs about as much as appending did, at most.
void SeriesStore::Parts::KeepIndexIfDue(JobId job) {
  const auto lease = jobs.Take(job);
  Lock lock(lease->mutex);
  if (!lease->open || !lease->reported.empty()) return;
  const uint64_t due = std::max({kIndexEvery, lease->indexed / 4, lease->index_bytes});
  if (lease->length - lease->indexed >= due) KeepIndex(job, *lease, lock);
}

void SeriesStore::Parts::KeepIndexAtEnd(JobId job, JobSeries& state) const {
  Lock lock(state.mutex);
  if (!state.open || !state.reported.empty()) return;
  if (state.length - state.indexed >= kWorthIndex) KeepIndex(job, state, lock);
}

// Outlines are dropped first: an append does not need them.
void SeriesStore::Parts::Trim() {
  jobs.Trim([this](JobId job, JobSeries& state) {
    {
      const MutexLock lock(state.mutex);
      if (state.open && state.outlined && state.chunks > state.series.size()) {
        state.DropOutline();
        state.Weigh();
        return false;
      }
    }
    KeepIndexAtEnd(job, state);
    return true;
  });
}

}  // namespace athanor
