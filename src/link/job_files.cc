#include "link/job_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kManifestEnd = ".manifest";
constexpr size_t kMostManifest = size_t{512} << 20;

Result<UniqueFd> InMemory(std::string_view text) {
  UniqueFd fd(::memfd_create("text", MFD_CLOEXEC));
  if (!fd) return FailErrno("make a file in memory", errno);
  ATHANOR_CHECK_OK(WriteAll(fd.get(), text));
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return FailErrno("seek", errno);
  return fd;
}

// Ids of the checkpoints in a folder, newest first.
Result<std::vector<CheckpointId>> IdsIn(JobFiles& files, const std::string& folder) {
  ATHANOR_TRY(const auto entries, files.List(folder));
  std::vector<CheckpointId> ids;
  for (const auto& entry : entries) {
    const std::string name = BaseName(entry.name);
    if (!EndsWith(name, kManifestEnd)) continue;
    if (const auto id = CheckpointId::Parse(name.substr(0, name.size() - kManifestEnd.size()))) {
      ids.push_back(*id);
    }
  }
  std::sort(ids.rbegin(), ids.rend());
  return ids;
}

tl::unexpected<Error> NotWhole(ErrorCode code, const std::string& file, std::string why) {
  return Fail(Error{code, "the checkpoint is not whole: file '" + Printable(file) + "'",
                    "ath checkpoints JOB"}
                  .Why(std::move(why)));
}

Status CheckSharedFiles(const CheckpointManifest& manifest, const std::string& shared_dir) {
  if (shared_dir.empty()) return Fail(ErrorCode::kBug, "no shared folder is known");
  ATHANOR_TRY(const UniqueFd dir, OpenDir(shared_dir));
  for (const auto& file : manifest.files) {
    struct stat info {};
    if (::fstatat(dir.get(), file.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      const bool gone = errno == ENOENT || errno == ENOTDIR;
      return NotWhole(gone ? ErrorCode::kNotFound : ErrorCode::kUnavailable, file.name,
                      "it is not there any more");
    }
    if (file.is_link()) continue;
    if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) != file.size) {
      return NotWhole(
          ErrorCode::kCorrupt, file.name,
          std::to_string(info.st_size) + " bytes instead of " + std::to_string(file.size));
    }
  }
  return Ok();
}

Status CheckParts(JobFiles& files, Shelf shelf, const CheckpointManifest& manifest) {
  std::vector<BlobRef> parts;
  std::vector<const CheckpointFile*> owners;
  for (const auto& file : manifest.files) {
    for (size_t i = 0; i < file.parts.size(); ++i) {
      parts.push_back({file.parts[i], PartSize(file.size, manifest.part_bytes, i)});
      owners.push_back(&file);
    }
  }
  ATHANOR_TRY(const auto there, files.Has(shelf, parts));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!there[i]) {
      return NotWhole(ErrorCode::kNotFound, owners[i]->name,
                      "part " + parts[i].sha256 + " is missing or has another size");
    }
  }
  return Ok();
}

}  // namespace

Status ReplaceWith(JobFiles& files, const std::string& name, std::string_view text) {
  ATHANOR_TRY(const auto fd, InMemory(text));
  return files.Replace(name, fd.get());
}

Result<std::string> ReadText(JobFiles& files, const std::string& name, size_t limit) {
  ATHANOR_TRY(const auto fd, files.Read(name));
  auto text = ReadAll(fd.get(), limit);
  // It is there, on this machine, and cannot be read: not a server that does not answer.
  if (!text && text.error().code == ErrorCode::kUnavailable) {
    text.error().code = ErrorCode::kCorrupt;
  }
  return text;
}

Result<BlobRef> PutText(JobFiles& files, Shelf shelf, std::string_view text) {
  ATHANOR_TRY(const auto fd, InMemory(text));
  return files.Put(shelf, fd.get(), 0, text.size(), {});
}

Shelf PartsOf(const std::string& folder) {
  return StartsWith(folder, "earlier/") ? Shelf::kEarlierParts : Shelf::kParts;
}

Result<CheckpointManifest> LoadCheckpoint(JobFiles& files, const std::string& folder,
                                          std::string_view id) {
  ATHANOR_TRY(const CheckpointId parsed, CheckpointId::Parse(id));
  auto text = ReadText(files, JoinPath(folder, parsed.ToString() + std::string(kManifestEnd)),
                       kMostManifest);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "no checkpoint " + parsed.ToString(), "ath checkpoints JOB");
  }
  ATHANOR_TRY(const std::string bytes, std::move(text));
  ATHANOR_TRY(CheckpointManifest manifest, ParseManifest(bytes));
  if (manifest.info.id != parsed.ToString()) {
    return Fail(ErrorCode::kCorrupt,
                "the manifest called " + parsed.ToString() + " is that of " + manifest.info.id);
  }
  return manifest;
}

Status CheckWhole(JobFiles& files, const std::string& folder, const CheckpointManifest& manifest,
                  const std::string& shared_dir) {
  if (manifest.shared) return CheckSharedFiles(manifest, shared_dir);
  return CheckParts(files, PartsOf(folder), manifest);
}

Result<CheckpointStore::Found> NewestCheckpoint(JobFiles& files, const std::string& folder,
                                                std::string_view before,
                                                const std::string& shared_dir) {
  std::optional<CheckpointId> limit;
  if (!before.empty()) {
    ATHANOR_TRY(limit, CheckpointId::Parse(before));
  }
  const auto is_damage = [](ErrorCode code) {
    return code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound ||
           code == ErrorCode::kInvalid || code == ErrorCode::kBug;
  };
  ATHANOR_TRY(const auto ids, IdsIn(files, folder));
  CheckpointStore::Found found;
  for (const auto& id : ids) {
    if (limit && id >= *limit) continue;
    auto manifest = LoadCheckpoint(files, folder, id.ToString());
    Status whole;
    if (manifest) {
      whole = CheckWhole(files, folder, *manifest, shared_dir);
    } else {
      whole = Fail(manifest.error());
    }
    if (whole.ok()) {
      found.manifest = std::move(*manifest);
      break;
    }
    // That the server cannot be reached says nothing about the checkpoint.
    const bool shared = manifest && manifest->shared;
    if (!shared && !is_damage(whole.error().code)) return tl::unexpected(std::move(whole).error());
    found.passed_over.push_back({id.ToString(), std::move(whole).error()});
  }
  return found;
}

}  // namespace athanor
