#include "record/logs/log_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "record/append_file.h"
#include "record/logs/log_index.h"
#include "record/open_jobs.h"

namespace athanor {
namespace {

constexpr size_t kIdleJobs = 64;
constexpr size_t kIndexBlock = 4096;  // entries read at once
constexpr size_t kReadFiles = 16;     // held open by one reader

// What is held in memory for one job.
struct JobLog {
  Mutex mutex;  // guards all below
  bool open = false;
  bool exists = false;
  uint64_t entries = 0;
  std::map<LogKey, uint64_t> length;
  std::set<uint64_t> reported;  // entries whose bytes are damaged

  void Forget() {
    open = exists = false;
    entries = 0;
    length.clear();
    reported.clear();
  }
};

struct Dirty {
  std::set<LogKey> streams;
  bool created = false;  // a file or the folder is new
};

// The files of one job for one reader: opened when needed, a few at a time.
class StreamFiles {
 public:
  explicit StreamFiles(std::string folder) : folder_(std::move(folder)) {}

  Result<std::string> Bytes(const LogIndexEntry& entry) {
    auto at = files_.find(entry.key);
    if (at == files_.end()) {
      if (files_.size() >= kReadFiles) files_.clear();
      ATHANOR_TRY(UniqueFd fd, OpenToRead(JoinPath(folder_, entry.key.FileName())));
      at = files_.emplace(entry.key, std::move(fd)).first;
    }
    return ReadAt(at->second.get(), entry.offset, entry.length);
  }

 private:
  std::string folder_;
  std::map<LogKey, UniqueFd> files_;
};

// Reads index entries in blocks, in either direction.
class IndexReader {
 public:
  IndexReader(UniqueFd fd, uint64_t entries) : fd_(std::move(fd)), entries_(entries) {}

  // Nothing for a damaged entry.
  Result<std::optional<LogIndexEntry>> At(uint64_t number) {
    if (number < first_ || number >= first_ + count()) {
      // Going back, the block ends with the wanted entry, else it begins there.
      const bool back = number < first_;
      first_ = back && number + 1 >= kIndexBlock ? number + 1 - kIndexBlock : back ? 0 : number;
      const uint64_t want = std::min<uint64_t>(kIndexBlock, entries_ - first_);
      ATHANOR_TRY(block_, ReadAt(fd_.get(), first_ * kLogIndexEntryBytes,
                                 static_cast<size_t>(want) * kLogIndexEntryBytes));
      if (number >= first_ + count()) return std::nullopt;
    }
    const auto at = static_cast<size_t>(number - first_) * kLogIndexEntryBytes;
    const auto bytes = std::string_view(block_).substr(at, kLogIndexEntryBytes);
    return DecodeLogIndexEntry(bytes);
  }
  void Forget() { block_.clear(); }

 private:
  uint64_t count() const { return block_.size() / kLogIndexEntryBytes; }

  UniqueFd fd_;
  uint64_t entries_;
  uint64_t first_ = 0;
  std::string block_;
};

// Where a chunk of more than kMaxLogChunk is split: after a line, if one ends there.
std::vector<std::string_view> Pieces(std::string_view bytes) {
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    size_t size = bytes.size();
    if (size > kMaxLogChunk) {
      const size_t line_end = bytes.rfind('\n', kMaxLogChunk - 1);
      size = line_end == std::string_view::npos ? kMaxLogChunk : line_end + 1;
    }
    pieces.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return pieces;
}

LogKey KeyOf(const LogChunk& chunk) {
  return {chunk.attempt, chunk.host, chunk.rank, chunk.stream};
}

tl::unexpected<Error> NoLog(JobId job) {
  return Fail(Error{ErrorCode::kNotFound, "no log of this job", "ath why " + job.ToString()}
                  .Why("nothing was printed so far")
                  .Id("ATH-R0013"));
}

}  // namespace

std::string LogCursor::ToString() const { return fmt::format("{}", entry); }

std::optional<LogCursor> LogCursor::Parse(std::string_view text) {
  LogCursor cursor;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, cursor.entry);
  if (error != std::errc() || at != end) return std::nullopt;
  return cursor;
}

struct LogStore::Parts {
  Parts(std::string folder, OnDamage report)
      : dir(std::move(folder)), on_damage(std::move(report)), jobs(kIdleJobs) {}

  const std::string dir;
  const OnDamage on_damage;
  OpenJobs<JobLog> jobs;

  Mutex dirty_mutex;
  std::map<JobId, Dirty> dirty GUARDED_BY(dirty_mutex);

  std::string FolderOf(JobId job) const { return JoinPath(dir, job.ToString()); }
  std::string IndexOf(JobId job) const { return FolderOf(job) + "/index"; }
  std::string PathOf(JobId job, const LogKey& key) const {
    return JoinPath(FolderOf(job), key.FileName());
  }

  void Report(JobId job, std::string what, std::string why) const {
    if (!on_damage) return;
    on_damage(job,
              Error{ErrorCode::kCorrupt, fmt::format("log of job {}: {}", job.ToString(), what)}
                  .Why(std::move(why))
                  .Where(IndexOf(job)));
  }

  Status Open(JobId job, JobLog& state);
  Status Load(JobId job, JobLog& state);
  Status Repair(JobId job, int index, uint64_t entries,
                const std::map<uint64_t, LogIndexEntry>& rewrites,
                std::vector<LogIndexEntry> missing);
  Status Store(JobId job, JobLog& state, const LogChunk& chunk, std::string_view fresh);
  void MarkDirty(JobId job, const LogKey& key, bool created) {
    const MutexLock lock(dirty_mutex);
    Dirty& entry = dirty[job];
    entry.streams.insert(key);
    entry.created |= created;
  }
  Status SyncJob(JobId job, const Dirty& entry) const;

  void ReportBytes(JobId job, JobLog& state, uint64_t number, const LogIndexEntry& entry) const {
    const MutexLock lock(state.mutex);
    if (!state.reported.insert(number).second) return;
    Report(job, fmt::format("{} bytes of {} were damaged", entry.length, entry.key.FileName()),
           fmt::format("their checksum is wrong, at byte {}", entry.offset));
  }
  Status Recheck(JobId job, JobLog& state) {
    const MutexLock lock(state.mutex);
    state.open = false;
    return Open(job, state);
  }
  // How many entries a reader may see. kNotFound: the job has no log.
  Result<uint64_t> Visible(JobId job, JobLog& state) {
    const MutexLock lock(state.mutex);
    ATHANOR_CHECK_OK(Open(job, state));
    if (!state.exists) return NoLog(job);
    return state.entries;
  }
};

// Updates the state from the files. Needs the state's mutex.
Status LogStore::Parts::Open(JobId job, JobLog& state) {
  if (state.open) return Ok();
  state.Forget();
  struct stat info {};
  if (::lstat(FolderOf(job).c_str(), &info) != 0) {
    if (errno != ENOENT) return FailErrno("stat " + FolderOf(job), errno);
  } else if (auto loaded = Load(job, state); !loaded.ok()) {
    state.Forget();
    return loaded;
  }
  state.open = true;
  return Ok();
}

Status LogStore::Parts::Load(JobId job, JobLog& state) {
  std::map<LogKey, LogIndexCheck::File> files;
  ATHANOR_TRY(const auto names, ListDir(FolderOf(job)));
  for (const auto& name : names) {
    const auto key = LogKey::Parse(name);
    struct stat info {};
    if (!key || ::lstat(PathOf(job, *key).c_str(), &info) != 0) continue;
    if (!S_ISREG(info.st_mode)) continue;
    const int64_t wall_ms = info.st_mtim.tv_sec * 1000LL + info.st_mtim.tv_nsec / 1'000'000;
    files[*key] = {static_cast<uint64_t>(info.st_size), wall_ms};
    state.length[*key] = static_cast<uint64_t>(info.st_size);
  }
  if (files.empty()) return Ok();
  state.exists = true;
  UniqueFd index(::open(IndexOf(job).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!index) return FailErrno("open " + IndexOf(job), errno);
  LogIndexCheck check(files);
  std::map<uint64_t, LogIndexEntry> rewrites;
  for (;;) {
    ATHANOR_TRY(const std::string block, ReadAt(index.get(), state.entries * kLogIndexEntryBytes,
                                                kIndexBlock * kLogIndexEntryBytes));
    const size_t whole = block.size() / kLogIndexEntryBytes;
    for (size_t i = 0; i < whole; ++i) {
      const auto bytes =
          std::string_view(block).substr(i * kLogIndexEntryBytes, kLogIndexEntryBytes);
      if (const auto right = check.Next(bytes)) rewrites[state.entries + i] = *right;
    }
    state.entries += whole;
    if (whole < kIndexBlock) break;
  }
  const auto missing = check.Missing();
  ATHANOR_CHECK_OK(Repair(job, index.get(), state.entries, rewrites, missing));
  state.entries += missing.size();
  return Ok();
}

Status LogStore::Parts::Repair(JobId job, int index, uint64_t entries,
                               const std::map<uint64_t, LogIndexEntry>& rewrites,
                               std::vector<LogIndexEntry> missing) {
  StreamFiles files(FolderOf(job));
  for (auto [number, entry] : rewrites) {
    if (entry.length > 0) {
      ATHANOR_TRY(const std::string bytes, files.Bytes(entry));
      entry.bytes_crc = Crc32c(bytes);
    }
    std::string coded;
    AddLogIndexEntry(coded, entry);
    const auto at = static_cast<off_t>(number * kLogIndexEntryBytes);
    if (::pwrite(index, coded.data(), coded.size(), at) != static_cast<ssize_t>(coded.size())) {
      return FailErrno("repair " + IndexOf(job), errno);
    }
  }
  std::string coded;
  for (auto& entry : missing) {
    ATHANOR_TRY(const std::string bytes, files.Bytes(entry));
    entry.bytes_crc = Crc32c(bytes);
    AddLogIndexEntry(coded, entry);
  }
  if (!rewrites.empty()) {
    Report(job, fmt::format("{} entries of the index were repaired", rewrites.size()),
           fmt::format("the first is number {}", rewrites.begin()->first));
  }
  // Cuts half an entry as well, if there is one.
  ATHANOR_CHECK_OK(AppendAt(IndexOf(job), entries * kLogIndexEntryBytes, coded));
  for (const auto& entry : missing) MarkDirty(job, entry.key, true);
  return Ok();
}

LogStore::LogStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LogStore::~LogStore() = default;

Result<std::unique_ptr<LogStore>> LogStore::Open(std::string dir, OnDamage on_damage) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  return std::unique_ptr<LogStore>(
      new LogStore(std::make_unique<Parts>(std::move(dir), std::move(on_damage))));
}

// The stream's bytes first: killed in between, they get their entry at the next open.
Status LogStore::Parts::Store(JobId job, JobLog& state, const LogChunk& chunk,
                              std::string_view fresh) {
  const LogKey key = KeyOf(chunk);
  const auto known = state.length.find(key);
  const uint64_t length = known == state.length.end() ? 0 : known->second;
  std::string coded;
  uint64_t offset = length;
  for (const auto piece : Pieces(fresh)) {
    AddLogIndexEntry(
        coded, {key, chunk.wall_ms, offset, static_cast<uint32_t>(piece.size()), Crc32c(piece)});
    offset += piece.size();
  }
  const auto give_up = [&](Status error) {
    // Something else changed the files: what is there now counts.
    const auto code = error.error().code;
    if (code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound) state.Forget();
    return error;
  };
  if (auto wrote = AppendAt(PathOf(job, key), length, fresh); !wrote.ok()) {
    return give_up(std::move(wrote));
  }
  if (auto wrote = AppendAt(IndexOf(job), state.entries * kLogIndexEntryBytes, coded);
      !wrote.ok()) {
    CutTo(PathOf(job, key), length);
    return give_up(std::move(wrote));
  }
  MarkDirty(job, key, known == state.length.end());
  state.exists = true;
  state.length[key] = offset;
  state.entries += coded.size() / kLogIndexEntryBytes;
  return Ok();
}

Result<LogStore::Appended> LogStore::Append(JobId job, const LogChunk& chunk) {
  const auto lease = parts_->jobs.Take(job);
  JobLog& state = *lease;
  const MutexLock lock(state.mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, state));
  const auto at = state.length.find(KeyOf(chunk));
  const uint64_t length = at == state.length.end() ? 0 : at->second;
  if (chunk.offset > length) {
    return Fail(
        Error{ErrorCode::kInvalid, fmt::format("a gap in {} of the log", KeyOf(chunk).FileName())}
            .Why(fmt::format("{} bytes are stored, and these begin at {}", length, chunk.offset)));
  }
  const uint64_t stored = length - chunk.offset;
  if (stored >= chunk.bytes.size()) return Appended{length, 0};
  const auto fresh = chunk.bytes.substr(static_cast<size_t>(stored));
  if (!state.exists) ATHANOR_CHECK_OK(MakeDirs(parts_->FolderOf(job)));
  ATHANOR_CHECK_OK(parts_->Store(job, state, chunk, fresh));
  return Appended{length + fresh.size(), fresh.size()};
}

Result<uint64_t> LogStore::Length(JobId job, uint32_t attempt, uint32_t host, uint32_t rank,
                                  LogStream stream) const {
  const auto lease = parts_->jobs.Take(job);
  const MutexLock lock(lease->mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, *lease));
  const auto at = lease->length.find({attempt, host, rank, stream});
  return at == lease->length.end() ? 0 : at->second;
}

Result<uint64_t> LogStore::Bytes(JobId job) const {
  const auto lease = parts_->jobs.Take(job);
  const MutexLock lock(lease->mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, *lease));
  uint64_t sum = 0;
  for (const auto& [key, length] : lease->length) sum += length;
  return sum;
}

Status LogStore::Parts::SyncJob(JobId job, const Dirty& entry) const {
  for (const auto& key : entry.streams) ATHANOR_CHECK_OK(SyncFileData(PathOf(job, key)));
  ATHANOR_CHECK_OK(SyncFileData(IndexOf(job)));
  if (!entry.created) return Ok();
  ATHANOR_CHECK_OK(SyncFolder(FolderOf(job)));
  return SyncFolder(dir);
}

Status LogStore::Sync() {
  std::map<JobId, Dirty> dirty;
  {
    const MutexLock lock(parts_->dirty_mutex);
    dirty.swap(parts_->dirty);
  }
  Status first_error;
  for (const auto& [job, entry] : dirty) {
    auto synced = parts_->SyncJob(job, entry);
    if (synced.ok()) continue;
    for (const auto& key : entry.streams) parts_->MarkDirty(job, key, entry.created);
    if (first_error.ok()) first_error = std::move(synced);
  }
  return first_error;
}

Result<std::vector<LogEntry>> LogStore::Read(JobId job, LogCursor& cursor, size_t max_bytes) const {
  const auto lease = parts_->jobs.Take(job);
  ATHANOR_TRY(const uint64_t entries, parts_->Visible(job, *lease));
  ATHANOR_TRY(UniqueFd fd, OpenToRead(parts_->IndexOf(job)));
  IndexReader index(std::move(fd), entries);
  StreamFiles files(parts_->FolderOf(job));
  std::vector<LogEntry> found;
  size_t sum = 0;
  bool checked = false;
  for (; cursor.entry < entries; ++cursor.entry) {
    ATHANOR_TRY(auto entry, index.At(cursor.entry));
    if (!entry && !std::exchange(checked, true)) {
      // Damaged since it was opened: a repair gives its bytes to another entry.
      ATHANOR_CHECK_OK(parts_->Recheck(job, *lease));
      index.Forget();
      ATHANOR_TRY(entry, index.At(cursor.entry));
    }
    if (!entry || entry->length == 0) continue;
    if (!found.empty() && sum + entry->length > max_bytes) break;
    ATHANOR_TRY(std::string bytes, files.Bytes(*entry));
    sum += bytes.size();
    const bool damaged = bytes.size() != entry->length || Crc32c(bytes) != entry->bytes_crc;
    if (damaged) parts_->ReportBytes(job, *lease, cursor.entry, *entry);
    const LogKey& key = entry->key;
    found.push_back({key.attempt, key.host, key.rank, key.stream, entry->wall_ms, std::move(bytes),
                     damaged, LogCursor{cursor.entry + 1}});
  }
  return found;
}

Result<LogCursor> LogStore::Tail(JobId job, size_t lines) const {
  const auto lease = parts_->jobs.Take(job);
  ATHANOR_TRY(const uint64_t entries, parts_->Visible(job, *lease));
  if (lines == 0) return LogCursor{entries};
  ATHANOR_TRY(UniqueFd fd, OpenToRead(parts_->IndexOf(job)));
  IndexReader index(std::move(fd), entries);
  StreamFiles files(parts_->FolderOf(job));
  std::set<LogKey> seen;
  size_t ends = 0;
  uint64_t at = entries;
  // Of each stream the first line found may have begun before, so one more is needed.
  while (at > 0 && (ends < lines || ends - lines < seen.size())) {
    ATHANOR_TRY(const auto entry, index.At(--at));
    if (!entry || entry->length == 0) continue;
    ATHANOR_TRY(const std::string bytes, files.Bytes(*entry));
    // A line that is still open is one of the last lines, too.
    if (seen.insert(entry->key).second && !bytes.ends_with('\n')) ++ends;
    ends += static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  }
  return LogCursor{at};
}

Result<LogCursor> LogStore::Since(JobId job, int64_t wall_ms) const {
  const auto lease = parts_->jobs.Take(job);
  ATHANOR_TRY(const uint64_t entries, parts_->Visible(job, *lease));
  ATHANOR_TRY(UniqueFd fd, OpenToRead(parts_->IndexOf(job)));
  IndexReader index(std::move(fd), entries);
  // Hosts have their own clocks, so times do not increase along the index.
  for (uint64_t at = 0; at < entries; ++at) {
    ATHANOR_TRY(const auto entry, index.At(at));
    if (entry && entry->length > 0 && entry->wall_ms >= wall_ms) return LogCursor{at};
  }
  return LogCursor{entries};
}

Status LogStore::Remove(JobId job) {
  const auto lease = parts_->jobs.Take(job);
  const MutexLock lock(lease->mutex);
  lease->Forget();
  return RemoveTree(parts_->FolderOf(job));
}

void LogStore::Close(JobId job) { parts_->jobs.Drop(job); }

}  // namespace athanor
