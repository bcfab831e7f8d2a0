#include "record/checkpoints/checkpoint_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <set>
#include <unordered_set>

#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"

namespace athanor {
namespace {

constexpr std::string_view kSuffix = ".manifest";
constexpr size_t kMaxManifest = size_t{512} << 20;

tl::unexpected<Error> FencedOff(uint32_t attempt, uint32_t by) {
  return Fail(Error{ErrorCode::kConflict,
                    fmt::format("attempt {} may not keep checkpoints any more", attempt)}
                  .Why(fmt::format("attempt {} of this job has taken over", by)));
}

tl::unexpected<Error> NotWhole(ErrorCode code, const std::string& file, std::string why) {
  return Fail(Error{code, fmt::format("the checkpoint is not whole: file '{}'", Printable(file)),
                    "ath checkpoints JOB"}
                  .Why(std::move(why)));
}

// What follows the numbers of a fence.
std::string SumOf(std::string_view text) { return fmt::format(" {:08x}\n", Crc32c(text)); }

Status CheckPart(const BlobStore& parts, const std::string& file, const BlobRef& part) {
  const auto fd = parts.Read(part);
  if (fd) return Ok();
  return NotWhole(fd.error().code, file, fd.error().what + ": " + fd.error().why);
}

Status CheckShared(int dir_fd, const CheckpointFile& file) {
  struct stat info {};
  if (::fstatat(dir_fd, file.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return NotWhole(
        errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
        file.name, "it is not there any more");
  }
  if (file.is_link()) return Ok();
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) != file.size) {
    return NotWhole(ErrorCode::kCorrupt, file.name,
                    fmt::format("{} bytes instead of {}", info.st_size, file.size));
  }
  return Ok();
}

}  // namespace

Result<CheckpointStore> CheckpointStore::Open(std::string manifest_dir, BlobStore parts,
                                              std::string shared_dir) {
  ATHANOR_CHECK_OK(MakeDirs(manifest_dir));
  return CheckpointStore(std::move(manifest_dir), std::move(parts), std::move(shared_dir));
}

std::string CheckpointStore::PathOf(const CheckpointId& id) const {
  return fmt::format("{}/{}{}", dir_, id.ToString(), kSuffix);
}

Result<UniqueFd> CheckpointStore::Lock() const {
  const std::string path = JoinPath(dir_, "lock");
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return FailErrno("open " + path, errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return FailErrno("lock " + path, errno);
  }
  return fd;
}

Result<std::vector<CheckpointId>> CheckpointStore::Ids() const {
  ATHANOR_TRY(const auto names, ListDir(dir_));
  std::vector<CheckpointId> ids;
  for (const std::string_view name : names) {
    if (!EndsWith(name, kSuffix)) continue;
    if (const auto id = CheckpointId::Parse(name.substr(0, name.size() - kSuffix.size()))) {
      ids.push_back(*id);
    }
  }
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

Result<CheckpointStore::Fenced> CheckpointStore::ReadFence(const std::string& dir) {
  auto text = ReadFile(JoinPath(dir, "fence"), 256);
  if (!text && text.error().code == ErrorCode::kNotFound) return Fenced{};
  ATHANOR_TRY(const std::string bytes, std::move(text));
  unsigned attempt = 0;
  unsigned last_attempt = 0;
  unsigned last_sequence = 0;
  // "2 1-7 sum\n"; one that an earlier version wrote has no sum.
  const size_t cut = bytes.find(' ', std::min(bytes.find(' '), bytes.size() - 1) + 1);
  const std::string numbers = bytes.substr(0, cut);
  const std::string tail = cut == std::string::npos ? "" : bytes.substr(cut);
  int end = 0;
  const bool read = std::sscanf(numbers.c_str(), "%u %u-%u%n", &attempt, &last_attempt,
                                &last_sequence, &end) == 3;
  const std::string rest = numbers.substr(static_cast<size_t>(end));
  const bool right = tail.empty() ? rest == "\n" : rest.empty() && tail == SumOf(numbers);
  if (!read || !right) {
    return Fail(ErrorCode::kCorrupt, JoinPath(dir, "fence") + " is damaged",
                "ath server stop\nath fsck");
  }
  return Fenced{attempt, {last_attempt, last_sequence}};
}

Status CheckpointStore::WriteFence(const Fenced& fenced) const {
  const std::string text = fmt::format("{} {}", fenced.attempt, fenced.last.ToString());
  return WriteFileAtomic(JoinPath(dir_, "fence"), text + SumOf(text));
}

Status CheckpointStore::CheckFence(const std::string& manifest_dir) {
  ATHANOR_CHECK_OK(ReadFence(manifest_dir));
  return Ok();
}

Status CheckpointStore::Fence(uint32_t attempt) {
  ATHANOR_TRY(const UniqueFd lock, Lock());
  ATHANOR_TRY(Fenced fenced, ReadFence(dir_));
  if (fenced.attempt > attempt) return FencedOff(attempt, fenced.attempt);
  // All writers hold the lock, so a temporary file found here has lost its writer.
  ATHANOR_TRY(const auto names, ListDir(dir_));
  for (const auto& name : names) {
    if (EndsWith(name, ".tmp")) ::unlink(JoinPath(dir_, name).c_str());
  }
  if (fenced.attempt == attempt) return Ok();
  fenced.attempt = attempt;
  ATHANOR_CHECK_OK(WriteFence(fenced));
  // The attempt that stored them is fenced off now, and a later commit checks its parts.
  RemoveUnnamedParts([](const std::string&) { return true; });
  return Ok();
}

Result<CheckpointInfo> CheckpointStore::Commit(CheckpointManifest manifest) {
  ATHANOR_CHECK_OK(CheckManifest(manifest));
  ATHANOR_TRY(const UniqueFd lock, Lock());
  ATHANOR_TRY(const Fenced fenced, ReadFence(dir_));
  CheckpointInfo& info = manifest.info;
  if (info.attempt == 0) return Fail(ErrorCode::kBug, "a checkpoint of no attempt");
  if (fenced.attempt > info.attempt) return FencedOff(info.attempt, fenced.attempt);
  if (!manifest.shared) ATHANOR_CHECK_OK(CheckWhole(manifest));
  CheckpointId id{info.attempt, 0};
  if (fenced.last.attempt == info.attempt) id.sequence = fenced.last.sequence;
  ATHANOR_TRY(const auto ids, Ids());
  for (const auto& other : ids) {
    if (other.attempt == info.attempt) id.sequence = std::max(id.sequence, other.sequence);
  }
  ++id.sequence;
  info.id = id.ToString();
  info.files = manifest.files.size();
  info.bytes = 0;
  for (const auto& file : manifest.files) info.bytes += file.size;
  ATHANOR_CHECK_OK(WriteFileAtomic(PathOf(id), FormatManifest(manifest)));
  return info;
}

Result<CheckpointManifest> CheckpointStore::Load(std::string_view id) const {
  ATHANOR_TRY(const CheckpointId parsed, CheckpointId::Parse(id));
  auto text = ReadFile(PathOf(parsed), kMaxManifest);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, fmt::format("no checkpoint {}", parsed.ToString()),
                "ath checkpoints JOB");
  }
  ATHANOR_TRY(const std::string bytes, std::move(text));
  ATHANOR_TRY(CheckpointManifest manifest, ParseManifest(bytes));
  // A copied or renamed file is not the checkpoint that it is named after.
  if (manifest.info.id != parsed.ToString()) {
    return Fail(ErrorCode::kCorrupt, fmt::format("the manifest called {} is that of {}",
                                                 parsed.ToString(), manifest.info.id));
  }
  return manifest;
}

Result<CheckpointStore::Listing> CheckpointStore::List() const {
  ATHANOR_TRY(const auto ids, Ids());
  Listing listing;
  for (const auto& id : ids) {
    auto manifest = Load(id.ToString());
    if (manifest) {
      listing.checkpoints.push_back(std::move(manifest->info));
    } else if (manifest.error().code != ErrorCode::kNotFound) {  // removed meanwhile
      listing.damaged.push_back({id.ToString(), std::move(manifest).error()});
    }
  }
  return listing;
}

Status CheckpointStore::CheckWhole(const CheckpointManifest& manifest) const {
  if (manifest.shared) {
    if (shared_dir_.empty()) return Fail(ErrorCode::kBug, "no shared folder is known");
    ATHANOR_TRY(const UniqueFd dir, OpenDir(shared_dir_));
    for (const auto& file : manifest.files) ATHANOR_CHECK_OK(CheckShared(dir.get(), file));
    return Ok();
  }
  for (const auto& file : manifest.files) {
    for (size_t i = 0; i < file.parts.size(); ++i) {
      const uint64_t bytes = PartSize(file.size, manifest.part_bytes, i);
      ATHANOR_CHECK_OK(CheckPart(parts_, file.name, {file.parts[i], bytes}));
    }
  }
  return Ok();
}

Result<CheckpointStore::Found> CheckpointStore::Newest(std::string_view before) const {
  std::optional<CheckpointId> limit;
  if (!before.empty()) {
    ATHANOR_TRY(limit, CheckpointId::Parse(before));
  }
  ATHANOR_TRY(const auto ids, Ids());
  Found found;
  for (const auto& id : ids) {
    if (limit && id >= *limit) continue;
    auto manifest = Load(id.ToString());
    if (!manifest) {
      found.passed_over.push_back({id.ToString(), std::move(manifest).error()});
      continue;
    }
    if (auto whole = CheckWhole(*manifest); !whole.ok()) {
      found.passed_over.push_back({id.ToString(), std::move(whole).error()});
      continue;
    }
    found.manifest = std::move(*manifest);
    break;
  }
  return found;
}

void CheckpointStore::RemoveUnnamedParts(
    const std::function<bool(const std::string& sha256)>& candidate) const {
  const auto ids = Ids();
  if (!ids) return;
  std::unordered_set<std::string> named;
  for (const auto& id : *ids) {
    const auto manifest = Load(id.ToString());
    // It is unknown what an unreadable manifest names: better keep too much.
    if (!manifest) return;
    if (manifest->shared) continue;
    for (const auto& file : manifest->files) named.insert(file.parts.begin(), file.parts.end());
  }
  std::vector<std::string> unnamed;
  (void)parts_.ForEach([&](const BlobRef& part) {
    if (named.count(part.sha256) == 0 && candidate(part.sha256)) unnamed.push_back(part.sha256);
  });
  for (const auto& sha256 : unnamed) (void)parts_.Remove(sha256);
}

Status CheckpointStore::RemoveLocked(const std::vector<CheckpointId>& ids) {
  ATHANOR_TRY(const auto present, Ids());
  std::unordered_set<std::string> candidates;
  for (const auto& id : ids) {
    if (const auto manifest = Load(id.ToString()); manifest && !manifest->shared) {
      for (const auto& file : manifest->files) {
        candidates.insert(file.parts.begin(), file.parts.end());
      }
    }
    if (!present.empty() && id == present.front()) {
      // The newest name must not be reused for other bytes.
      ATHANOR_TRY(Fenced fenced, ReadFence(dir_));
      fenced.last = std::max(fenced.last, id);
      ATHANOR_CHECK_OK(WriteFence(fenced));
    }
    const std::string path = PathOf(id);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno("remove " + path, errno);
  }
  // Otherwise, a power cut could bring back a manifest whose parts are gone.
  ATHANOR_CHECK_OK(SyncFolder(dir_));
  if (!candidates.empty()) {
    RemoveUnnamedParts([&](const std::string& sha256) { return candidates.count(sha256) > 0; });
  }
  return Ok();
}

Status CheckpointStore::Remove(std::string_view id) {
  ATHANOR_TRY(const CheckpointId parsed, CheckpointId::Parse(id));
  ATHANOR_TRY(const UniqueFd lock, Lock());
  return RemoveLocked({parsed});
}

Status CheckpointStore::DropUnnamedParts(
    uint32_t attempt, const std::function<bool(const std::string& sha256)>& needed) {
  ATHANOR_TRY(const UniqueFd lock, Lock());
  ATHANOR_TRY(const Fenced fenced, ReadFence(dir_));
  if (fenced.attempt > attempt) return FencedOff(attempt, fenced.attempt);
  RemoveUnnamedParts([&](const std::string& sha256) { return !needed(sha256); });
  return Ok();
}

Result<std::vector<std::string>> CheckpointStore::ApplyKeep(const CheckpointSpec& spec,
                                                            const ValueOf& value_of) {
  ATHANOR_TRY(const UniqueFd lock, Lock());
  ATHANOR_TRY(const auto ids, Ids());
  std::vector<CheckpointId> others;  // not kept for being recent, newest first
  std::vector<std::pair<double, CheckpointId>> valued;
  std::set<CheckpointId> kept;
  uint32_t recent = 0;
  for (const auto& id : ids) {
    const auto manifest = Load(id.ToString());
    if (!manifest) continue;
    // Files that stay in place on another machine cannot be asked for: they count as there.
    const bool elsewhere = manifest->shared && shared_dir_.empty();
    const bool whole = elsewhere || CheckWhole(*manifest).ok();
    // The first n complete ones, and incomplete ones among them: they may only be out of reach now.
    if (id == ids.front() || recent < spec.keep_last) kept.insert(id);
    if (!whole) {
      if (kept.count(id) == 0) others.push_back(id);
      continue;
    }
    // Whatever the numbers say, the next attempt needs the newest complete one.
    if (recent == 0) kept.insert(id);
    ++recent;
    if (kept.count(id) == 0) others.push_back(id);
    if (spec.keep_best == 0 || !value_of || !manifest->info.step) continue;
    const auto value = value_of(*manifest->info.step);
    if (value && !std::isnan(*value)) valued.emplace_back(*value, id);
  }
  // Best first; of equal ones the newer, which comes first already.
  const bool larger = spec.best_goal == "max";
  std::stable_sort(valued.begin(), valued.end(), [&](const auto& a, const auto& b) {
    return larger ? a.first > b.first : a.first < b.first;
  });
  for (size_t i = 0; i < valued.size() && i < spec.keep_best; ++i) kept.insert(valued[i].second);
  std::vector<CheckpointId> removed;
  std::vector<std::string> names;
  for (const auto& id : others) {
    if (kept.count(id) > 0) continue;
    removed.push_back(id);
    names.push_back(id.ToString());
  }
  if (!removed.empty()) ATHANOR_CHECK_OK(RemoveLocked(removed));
  return names;
}

}  // namespace athanor
