#include "record/backup/backup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/ids.h"
#include "record/append_file.h"
#include "record/backup/backup_objects.h"
#include "record/backup/copy_tree.h"
#include "record/backup/series_pack.h"
#include "record/checkpoints/checkpoint_manifest.h"
#include "record/db/database.h"

namespace athanor {
namespace {

constexpr int kFormat = 2;  // 1: each series is a file
constexpr char kInfoName[] = "backup.json";
constexpr std::string_view kManifestMark = "athanor-checkpoint ";
// In our own folders: what is being written, and locks.
const std::vector<std::string> kPassing = {"tmp", "lock"};

std::optional<Compression> ArchiveOf(std::string_view path) {
  if (EndsWith(path, ".tar")) return Compression::kNone;
  if (EndsWith(path, ".tar.gz")) return Compression::kGzip;
  if (EndsWith(path, ".tar.zst")) return Compression::kZstd;
  return std::nullopt;
}

Json ToJson(const BackupInfo& info) {
  return {{"athanor_backup", kFormat}, {"version", info.version},
          {"made", info.made.ms},      {"home", info.home},
          {"schema", info.schema},     {"jobs", info.jobs},
          {"live", info.live},         {"files", info.files},
          {"bytes", info.bytes},       {"secret_key", info.secret_key}};
}

Result<BackupInfo> InfoFrom(const std::string& path, const std::string& text) {
  const auto no_backup = [&](std::string why) {
    return Fail(Error{ErrorCode::kInvalid, path + " is no backup of athanor",
                      "ath server backup DIR    makes one"}
                    .Why(std::move(why)));
  };
  const auto json = ParseJson(text);
  if (!json || !json->is_object()) return no_backup(std::string(kInfoName) + " cannot be read");
  const auto number = [&](const char* key) -> int64_t {
    return json->contains(key) && (*json)[key].is_number_integer() ? (*json)[key].get<int64_t>()
                                                                   : 0;
  };
  const auto words = [&](const char* key) {
    return json->contains(key) && (*json)[key].is_string() ? (*json)[key].get<std::string>()
                                                           : std::string();
  };
  if (number("athanor_backup") < 1) return no_backup(std::string(kInfoName) + " is another's");
  if (number("athanor_backup") > kFormat) {
    return Fail(ErrorCode::kConflict, path + " was made by a newer athanor",
                "restore it with that version");
  }
  BackupInfo info;
  info.path = path;
  info.version = words("version");
  info.home = words("home");
  info.made = WallTime{number("made")};
  info.schema = number("schema");
  info.jobs = static_cast<uint64_t>(number("jobs"));
  info.live = static_cast<uint64_t>(number("live"));
  info.files = static_cast<uint64_t>(number("files"));
  info.bytes = static_cast<uint64_t>(number("bytes"));
  info.secret_key = json->value("secret_key", false);
  return info;
}

// Copies one home into one folder.
class Copier {
 public:
  Copier(const StoreLayout& from, std::string folder, BackupInfo& info)
      : from_(from), to_{std::move(folder)}, info_(info) {}

  Status Run() {
    ATHANOR_CHECK_OK(MakeDirs(to_.server()));
    ATHANOR_CHECK_OK(CopyDatabase());
    ATHANOR_CHECK_OK(ListSeries());
    for (const auto& [from, to] :
         {std::pair(from_.secret_key(), to_.secret_key()),
          std::pair(from_.ingest_key(), to_.ingest_key()),
          std::pair(from_.agents_key(), to_.agents_key()),
          std::pair(from_.settings(), to_.settings()), std::pair(from_.types(), to_.types())}) {
      ATHANOR_CHECK_OK(copy_.File(from, to));
    }
    info_.secret_key = Exists(to_.secret_key());
    for (const JobId job : jobs_) {
      ATHANOR_CHECK_OK(CopyCheckpoints(job));
      ATHANOR_CHECK_OK(CopyLog(job));
    }
    ATHANOR_CHECK_OK(CopySeries());
    if (Exists(from_.artifacts())) {
      ATHANOR_CHECK_OK(CopyBlobs(from_.artifacts(), to_.artifacts()));
    }
    ATHANOR_CHECK_OK(CopyBlobs(from_.blobs(), to_.blobs()));
    ATHANOR_CHECK_OK(CopyObjects(from_, to_, copy_));
    info_.files += copy_.files();
    info_.bytes += copy_.bytes();
    info_.linked = copy_.linked();
    // Last: a folder without it is not a backup.
    return WriteFileAtomic(JoinPath(to_.root, kInfoName), DumpJsonPretty(ToJson(info_)) + "\n");
  }

 private:
  Status CopyDatabase() {
    // Its own connection: it works with and without a running server.
    ATHANOR_TRY(auto database, Database::OpenToLook(from_.database(), ServerMigrations()));
    ATHANOR_CHECK_OK(database->CopyTo(to_.database()));
    info_.made = SystemClock().Wall();
    ATHANOR_TRY(auto copy, Database::OpenToLook(to_.database(), ServerMigrations()));
    return copy->Read([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* version, connection.Prepare("PRAGMA user_version"));
      ATHANOR_CHECK_OK(version->Step());
      info_.schema = version->Int(0);
      ATHANOR_TRY(auto* rows, connection.Prepare("SELECT id, live FROM jobs ORDER BY id"));
      while (true) {
        ATHANOR_TRY(const bool row, rows->Step());
        if (!row) return Ok();
        ++info_.jobs;
        info_.live += static_cast<uint64_t>(rows->Int(1));
        if (const auto job = JobId::Parse(rows->Text(0))) jobs_.push_back(*job);
      }
    });
  }

  // Of every run, job or not; a store of before version 4 knows jobs only.
  Status ListSeries() {
    series_.insert(jobs_.begin(), jobs_.end());
    if (info_.schema < 4) return Ok();
    ATHANOR_TRY(auto copy, Database::OpenToLook(to_.database(), ServerMigrations()));
    return copy->Read([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* rows, connection.Prepare("SELECT id FROM runs"));
      while (true) {
        ATHANOR_TRY(const bool row, rows->Step());
        if (!row) return Ok();
        if (const auto run = JobId::Parse(rows->Text(0))) series_.insert(*run);
      }
    });
  }

  // The index first: bytes are stored before their entry, so the streams, copied later, have at
  // least what it names.
  Status CopyLog(JobId job) {
    const std::string from = JoinPath(from_.logs(), job.ToString());
    const std::string to = JoinPath(to_.logs(), job.ToString());
    ATHANOR_TRY(const auto names, copy_.Names(from));
    if (names.empty()) return Ok();
    ATHANOR_CHECK_OK(copy_.Folder(to));
    ATHANOR_CHECK_OK(copy_.File(from + "/index", to + "/index"));
    for (const auto& name : names) {
      if (name != "index") ATHANOR_CHECK_OK(copy_.File(JoinPath(from, name), JoinPath(to, name)));
    }
    return Ok();
  }

  Status CopySeries() {
    ATHANOR_TRY(const auto pack, SeriesPack::Make(to_));
    for (const JobId run : series_) ATHANOR_CHECK_OK(pack->Add(from_, run));
    ATHANOR_CHECK_OK(pack->Close());
    info_.files += pack->files();
    info_.bytes += pack->bytes();
    return Ok();
  }

  // Manifests before the parts that they name. If one is gone afterwards, it was removed meanwhile,
  // perhaps with parts that were not copied yet: then its copy is removed, too.
  Status CopyCheckpoints(JobId job) {
    const std::string from = from_.job(job.ToString());
    const std::string to = to_.job(job.ToString());
    ATHANOR_TRY(const auto names, copy_.Names(from));
    std::vector<std::string> manifests;
    bool in_place = false;
    for (const auto& name : names) {
      if (name == "checkpoints" || name == "events") continue;
      ATHANOR_TRY(const auto inner, copy_.Names(JoinPath(from, name)));
      for (const auto& file : inner) {
        const std::string path = JoinPath(name, file);
        const auto text = ReadFile(JoinPath(from, path), 64u << 20);
        if (!text || !StartsWith(*text, kManifestMark)) continue;
        const auto manifest = ParseManifest(*text);
        in_place |= !manifest || manifest->shared;
        manifests.push_back(path);
        ATHANOR_CHECK_OK(copy_.Folder(DirName(JoinPath(to, path))));
        ATHANOR_CHECK_OK(copy_.File(JoinPath(from, path), JoinPath(to, path)));
      }
    }
    for (const auto& name : names) {
      // The script's own files are kept as parts, unless they are kept in place.
      if (name == "checkpoints" && !manifests.empty() && !in_place) continue;
      const bool own = name != "checkpoints";
      ATHANOR_CHECK_OK(copy_.Tree(JoinPath(from, name), JoinPath(to, name),
                                  own ? kPassing : std::vector<std::string>()));
    }
    for (const auto& path : manifests) {
      if (!Exists(JoinPath(from, path))) ::unlink(JoinPath(to, path).c_str());
    }
    return Ok();
  }

  Status CopyBlobs(const std::string& from, const std::string& to) {
    ATHANOR_CHECK_OK(MakeDirs(to));
    return copy_.Tree(from, to, kPassing);
  }

  const StoreLayout from_;
  const StoreLayout to_;
  BackupInfo& info_;
  TreeCopy copy_{TreeCopy::Blobs::kLink};
  std::vector<JobId> jobs_;
  std::set<JobId> series_;
};

Status CheckTarget(const StoreLayout& layout, const std::string& target) {
  if (target.empty() || target.front() != '/') {
    return Fail(Error{ErrorCode::kInvalid,
                      "the place of a backup must be an absolute path: " + target,
                      "ath server backup /path/to/FOLDER"}
                    .Id("ATH-V0022"));
  }
  if (target == layout.root || StartsWith(target, layout.root + "/")) {
    return Fail(Error{ErrorCode::kConflict, "a backup inside the home would be lost with it",
                      "ath server backup /another/place"}
                    .Id("ATH-V0022"));
  }
  const auto names = ListDir(target);
  if (Exists(target) && (!names || !names->empty())) {
    return Fail(Error{ErrorCode::kConflict, "there is already something at " + target,
                      "give a new name, such as " + target + "-2"}
                    .Id("ATH-V0022"));
  }
  return Ok();
}

Status SyncDisk(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0) return FailErrno("sync " + path, errno);
  return Ok();
}

// `folder` packed into `target`, through a temporary file next to it.
Status Pack(const std::string& folder, const std::string& target, Compression compression) {
  const std::string partial = target + ".partial";
  auto packed = [&]() -> Status {
    const UniqueFd out(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!out) return FailErrno("create " + partial, errno);
    ATHANOR_CHECK_OK(PackTree(folder, out.get(), compression));
    if (::fsync(out.get()) != 0) return FailErrno("sync " + partial, errno);
    if (::rename(partial.c_str(), target.c_str()) != 0) {
      return FailErrno("rename to " + target, errno);
    }
    return SyncFolder(DirName(target));
  }();
  if (!packed.ok()) ::unlink(partial.c_str());
  return packed;
}

}  // namespace

Result<UniqueFd> LockBackups(const StoreLayout& layout) {
  const std::string path = layout.server() + "/backup.lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return FailErrno("open " + path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  return Fail(
      Error{ErrorCode::kConflict, "a backup or a sweep is being made", "wait for it, then repeat"}
          .Id("ATH-V0023"));
}

Result<BackupInfo> MakeBackup(const StoreLayout& layout, const std::string& target,
                              const std::string& version) {
  ATHANOR_CHECK_OK(CheckTarget(layout, target));
  if (!Exists(layout.database())) {
    return Fail(Error{ErrorCode::kNotFound, "there is nothing to back up in " + layout.root,
                      "is ATHANOR_HOME the right folder?"}
                    .Id("ATH-V0021"));
  }
  ATHANOR_TRY(const UniqueFd lock, LockBackups(layout));
  const auto archive = ArchiveOf(target);
  // An archive is packed from a folder in the home, where blobs can be linked.
  const std::string folder = archive ? layout.server() + "/backup.partial" : target + ".partial";
  ATHANOR_CHECK_OK(RemoveTree(folder));  // left by a backup that was killed
  BackupInfo info;
  info.path = target;
  info.version = version;
  info.home = layout.root;
  auto made = [&]() -> Status {
    ATHANOR_CHECK_OK(MakeDirs(DirName(target)));
    ATHANOR_CHECK_OK(MakeDirs(folder));
    ATHANOR_CHECK_OK(Copier(layout, folder, info).Run());
    if (archive) return Pack(folder, target, *archive);
    ATHANOR_CHECK_OK(SyncDisk(folder));
    if (::rename(folder.c_str(), target.c_str()) != 0) {
      return FailErrno("rename to " + target, errno);
    }
    return SyncFolder(DirName(target));
  }();
  if (archive || !made.ok()) (void)RemoveTree(folder).ok();
  if (!made.ok()) {
    Error error = made.error();
    error.what = "the backup was not made: " + error.what;
    if (error.code == ErrorCode::kExhausted && error.hint.empty()) {
      error.hint = "df -h " + ShellQuote(DirName(target)) + " " + ShellQuote(layout.root);
    }
    return Fail(std::move(error));
  }
  return info;
}

Result<BackupInfo> UnpackBackup(const std::string& from, const std::string& folder) {
  struct stat kind {};
  if (::stat(from.c_str(), &kind) != 0) {
    return Fail(
        Error{ErrorCode::kNotFound, "there is no backup at " + from, "ls -l " + ShellQuote(from)}
            .Id("ATH-V0024"));
  }
  if (S_ISDIR(kind.st_mode)) {
    auto text = ReadFile(JoinPath(from, kInfoName), 1 << 20);
    // Before anything is copied.
    ATHANOR_CHECK_OK(InfoFrom(from, text.value_or("")));
    TreeCopy copy(TreeCopy::Blobs::kCopy);
    ATHANOR_CHECK_OK(copy.Tree(from, folder));
  } else {
    const UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!in) return FailErrno("open " + from, errno);
    ATHANOR_TRY(const UniqueFd out, OpenDir(folder));
    ExtractLimits limits;
    limits.max_entries = 100'000'000;
    limits.max_bytes = uint64_t{1} << 50;
    limits.max_ratio = 100'000;  // ours; logs pack very well
    ATHANOR_CHECK_OK(ExtractTar(in.get(), out.get(), limits));
  }
  auto text = ReadFile(JoinPath(folder, kInfoName), 1 << 20);
  ATHANOR_TRY(BackupInfo info, InfoFrom(from, text.value_or("")));
  const StoreLayout made{folder};
  ATHANOR_CHECK_OK(UnpackSeries(made));
  for (const auto& path :
       {made.database(), made.secret_key(), made.ingest_key(), made.agents_key()}) {
    if (Exists(path) && ::chmod(path.c_str(), 0600) != 0) return FailErrno("chmod " + path, errno);
  }
  return info;
}

}  // namespace athanor
