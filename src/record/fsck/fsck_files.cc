// The files: blobs, series, logs, checkpoints, and files that belong to nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "job/host_folder.h"
#include "job/manifest.h"
#include "record/append_file.h"
#include "record/fsck/checker.h"
#include "record/logs/log_index.h"
#include "record/logs/log_store.h"
#include "record/series/series_file.h"

namespace athanor {
namespace {

constexpr size_t kIndexBlock = 4096;

// The names in a folder; none when it is not there.
Result<std::vector<std::string>> NamesIn(const std::string& folder) {
  auto names = ListDir(folder);
  if (!names && names.error().code == ErrorCode::kNotFound) return std::vector<std::string>();
  return names;
}

bool IsLocked(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// The file without what is damaged in it.
Status WriteWithout(const std::string& path, const SeriesScan& scan) {
  ATHANOR_TRY(const std::string bytes, ReadFile(path));
  std::string good;
  uint64_t at = 0;
  for (const auto& damage : scan.damage) {
    good.append(bytes, at, damage.offset - at);
    at = damage.offset + damage.bytes;
  }
  good.append(bytes, at, scan.end - at);
  return WriteFileAtomic(path, good);
}

}  // namespace

void Checker::NameBlob(const std::string& sha256, std::optional<uint64_t> size,
                       const std::string& by) {
  if (sha256.empty()) return;
  Named& named = named_.try_emplace(sha256, Named{std::nullopt, by}).first->second;
  if (size) named.size = size;
}

void Checker::NameBundle(const std::string& sha256, const std::string& what) {
  if (sha256.empty() || !bundles_.insert(sha256).second) return;
  NameBlob(sha256, std::nullopt, what);
  const std::string path = fmt::format("{}/{}/{}", layout_.blobs(), sha256.substr(0, 2), sha256);
  const auto text = ReadFile(path, kManifestTextLimit);
  if (!text) return;  // reported with the blobs
  auto manifest = ReadManifest(*text);
  if (!manifest) {
    Add("blob", "the listing of " + what + " cannot be read", manifest.error().what, kRestore,
        path);
    return;
  }
  for (const auto& entry : manifest->entries) {
    if (entry.kind == BundleEntry::Kind::kFile) {
      NameBlob(entry.sha256, entry.size, Printable(entry.path) + " in " + what);
    }
  }
}

void Checker::NameBlobs(const JobRecord& record) {
  const std::string by = "job " + Printable(record.spec.name);
  NameBundle(record.spec.source.bundle, "the source of " + by);
  NameBlob(record.spec.source.git_diff, std::nullopt, "the uncommitted change of " + by);
  NameBlob(record.packages, std::nullopt, "the packages of " + by);
  for (const auto& output : record.outputs) {
    if (output.is_listing()) {
      NameBundle(output.blob, "the files that " + by + " left");
    } else {
      NameBlob(output.blob, output.bytes, Printable(output.name) + " of " + by);
    }
  }
}

void Checker::CheckBlob(const std::string& sha256, const Named& named) {
  ++report_.blobs;
  const std::string path = fmt::format("{}/{}/{}", layout_.blobs(), sha256.substr(0, 2), sha256);
  const Status right = [&]() -> Status {
    ATHANOR_TRY(const UniqueFd fd, OpenToRead(path));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return FailErrno("stat " + path, errno);
    const auto size = static_cast<uint64_t>(info.st_size);
    if (named.size && size != *named.size) {
      return Fail(ErrorCode::kCorrupt, fmt::format("{} bytes instead of {}", size, *named.size));
    }
    if (!options_.deep) return Ok();
    report_.bytes += size;
    ATHANOR_TRY(const std::string found, Sha256File(fd.get()));
    if (found == sha256) return Ok();
    return Fail(ErrorCode::kCorrupt, "its bytes have the sha256 " + found);
  }();
  if (right.ok()) return;
  const bool there = Exists(path);
  Finding& finding = Add(
      "blob", named.by + (there ? " is damaged" : " is missing"), right.error().what,
      there
          ? fmt::format("{}    puts it aside, so that it can be sent again\n{}", kRepair, kRestore)
          : kRestore,
      path);
  if (there && options_.repair) Settle(finding, PutAside(path));
}

void Checker::CheckBlobs() {
  for (const auto& [sha256, named] : named_) CheckBlob(sha256, named);
}

void Checker::CheckSeriesFile(JobId job, const std::string& path) {
  ++report_.series;
  auto fd = OpenToRead(path);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0) {
    Add("series", "metrics of job " + job.ToString() + " cannot be opened",
        fd ? "stat failed" : fd.error().what, "ls -l " + ShellQuote(path), path);
    return;
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  report_.bytes += size;
  JobId owner = job;
  SeriesVisitor visitor;
  visitor.header = [&](JobId named) { owner = named; };
  auto scan = ScanSeries(fd->get(), 0, size, visitor);
  if (!scan || owner != job) {
    Add("series", "metrics of job " + job.ToString() + " cannot be read",
        scan ? "they are those of job " + owner.ToString() : scan.error().what, kRestore, path);
    return;
  }
  if (scan->damage.empty() && scan->end == size) return;
  uint64_t damaged = 0;
  for (const auto& damage : scan->damage) damaged += damage.bytes;
  Finding& finding =
      Add("series",
          fmt::format("metrics of job {}: {} bytes are damaged", job.ToString(),
                      damaged + size - scan->end),
          scan->damage.empty() ? fmt::format("the record at byte {} is not whole", scan->end)
                               : fmt::format("{} places, the first at byte {}", scan->damage.size(),
                                             scan->damage.front().offset),
          kRepair, path);
  if (!options_.repair) return;
  auto kept = CopyAside(path);
  // What an index knows about the file, and the stored summaries of its metrics, are no longer
  // valid.
  if (kept.ok()) kept = RemoveTree(path.substr(0, path.size() - 7) + ".index");
  if (kept.ok()) kept = RemoveTree(layout_.kept_metrics());
  if (kept.ok()) kept = WriteWithout(path, *scan);
  Settle(finding, kept);
}

Status Checker::CheckSeries() {
  ATHANOR_TRY(const auto folders, NamesIn(layout_.series()));
  for (const auto& folder : folders) {
    const std::string path = JoinPath(layout_.series(), folder);
    ATHANOR_TRY(const auto names, NamesIn(path));
    for (const auto& name : names) {
      constexpr std::string_view kEnd = ".series";
      const auto job = EndsWith(name, kEnd)
                           ? JobId::Parse(name.substr(0, name.size() - kEnd.size()))
                           : std::nullopt;
      if (!job) continue;
      if (jobs_known_ && !jobs_.contains(*job) && !runs_.contains(*job)) {
        Leftover(JoinPath(path, name), "metrics of job " + job->ToString());
      } else {
        CheckSeriesFile(*job, JoinPath(path, name));
      }
    }
  }
  return Ok();
}

void Checker::CheckLog(JobId job, const std::string& folder) {
  ++report_.logs;
  std::map<LogKey, LogIndexCheck::File> files;
  std::map<LogKey, UniqueFd> streams;
  for (const auto& name : NamesIn(folder).value_or(std::vector<std::string>())) {
    const auto key = LogKey::Parse(name);
    struct stat info {};
    const std::string path = JoinPath(folder, name);
    if (!key || ::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    files[*key] = {static_cast<uint64_t>(info.st_size), 0};
    report_.bytes += static_cast<uint64_t>(info.st_size);
    if (auto fd = OpenToRead(path)) streams[*key] = std::move(*fd);
  }
  const std::string index_path = JoinPath(folder, "index");
  const auto index = OpenToRead(index_path);
  if (files.empty() || !index) return;  // nothing printed; or killed before the first entry
  LogIndexCheck check(files);
  uint64_t wrong = 0;
  uint64_t damaged = 0;
  for (uint64_t at = 0;; at += kIndexBlock) {
    const auto block =
        ReadAt(index->get(), at * kLogIndexEntryBytes, kIndexBlock * kLogIndexEntryBytes);
    const size_t whole = block ? block->size() / kLogIndexEntryBytes : 0;
    for (size_t i = 0; i < whole; ++i) {
      const auto bytes =
          std::string_view(*block).substr(i * kLogIndexEntryBytes, kLogIndexEntryBytes);
      if (check.Next(bytes)) {
        ++wrong;
        continue;
      }
      const auto entry = DecodeLogIndexEntry(bytes);
      if (!entry || entry->length == 0) continue;
      const auto text = ReadAt(streams[entry->key].get(), entry->offset, entry->length);
      if (!text || Crc32c(*text) != entry->bytes_crc) damaged += entry->length;
    }
    if (whole < kIndexBlock) break;
  }
  // Bytes without an entry are not damage: a kill between the two leaves them, and the next use
  // gives them one.
  if (damaged > 0) {
    Add("log", fmt::format("log of job {}: {} bytes are damaged", job.ToString(), damaged),
        "they are shown, and marked as damaged", kRestore, folder);
  }
  if (wrong == 0) return;
  Finding& finding =
      Add("log",
          fmt::format("log of job {}: {} entries of its index are damaged", job.ToString(), wrong),
          "the text is there; its order or times are not", kRepair, index_path);
  if (!options_.repair) return;
  Settle(finding, [&]() -> Status {
    ATHANOR_CHECK_OK(CopyAside(index_path));
    ATHANOR_TRY(const auto store, LogStore::Open(layout_.logs()));
    ATHANOR_CHECK_OK(store->Bytes(job));
    return store->Sync();
  }());
}

Status Checker::CheckLogs() {
  ATHANOR_TRY(const auto names, NamesIn(layout_.logs()));
  for (const auto& name : names) {
    const auto job = JobId::Parse(name);
    if (!job) continue;
    const std::string folder = JoinPath(layout_.logs(), name);
    if (jobs_known_ && !jobs_.contains(*job)) {
      Leftover(folder, "the log of job " + name);
    } else {
      CheckLog(*job, folder);
    }
  }
  return Ok();
}

void Checker::Leftover(const std::string& path, const std::string& what) {
  Finding& finding = Add("leftover", what + ": there is no such job", "",
                         std::string(kRepair) + "    puts it into lost+found", path);
  if (options_.repair) Settle(finding, PutAside(path));
}

Status Checker::CheckLeftovers() {
  if (!jobs_known_) return Ok();  // without the list everything would look left over
  ATHANOR_TRY(const auto folders, NamesIn(layout_.jobs()));
  for (const auto& name : folders) {
    const auto job = JobId::Parse(name);
    if (job && !jobs_.contains(*job)) {
      Leftover(layout_.job(name), "the folder of job " + name);
    }
  }
  ATHANOR_TRY(const auto attempts, NamesIn(layout_.attempts()));
  for (const auto& name : attempts) {
    const auto folder = ParseHostFolder(name);
    if (!folder || live_attempts_.contains(folder->attempt)) continue;
    const std::string path = JoinPath(layout_.attempts(), name);
    const bool alive = IsLocked(JoinPath(path, "agent.lock"));
    const bool known = attempts_.contains(folder->attempt);
    Finding& finding =
        Add("leftover",
            "the folder of attempt " + name + (known ? ", which is over" : ": no such attempt"),
            alive ? "its agent still runs" : "",
            alive ? "ps -ef | grep " + name : std::string(kRepair) + "    puts it into lost+found",
            path);
    if (options_.repair && !alive) Settle(finding, PutAside(path));
  }
  return Ok();
}

}  // namespace athanor
