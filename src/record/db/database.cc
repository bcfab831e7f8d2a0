#include "record/db/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>
#include <vector>

#include "base/exec/mutex.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/db/broken_log.h"
#include "record/db/page_check.h"
#include "record/db/sqlite_connection.h"

namespace athanor {
namespace {

constexpr size_t kMostReaders = 4;
// When the log is merged into the file: next to the writer, and if that does not keep up (a slow or
// full disk), by the writer.
constexpr int kLongLog = 2'000;  // pages
constexpr int kTooLongLog = 16'000;
// Beyond the size of a store that is to get page checksums: what jobs need meanwhile.
constexpr uint64_t kRoomToSpare = 64u << 20;

Status MakePrivate(const std::string& path) {
  // O_EXCL: closing a descriptor of a file that SQLite has open would drop SQLite's locks.
  UniqueFd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made || errno == EEXIST) return Ok();
  Error error = FailErrno("the store cannot be made: " + path, errno).value();
  if (error.hint.empty()) {
    error.hint = "set ATHANOR_HOME to a folder that exists and that you may write";
  }
  return Fail(std::move(error));
}

Status CopyDatabase(const std::string& path, const std::string& target,
                    SqliteConnection::Role role = SqliteConnection::Role::kCopier) {
  if (Exists(target)) {
    return Fail(ErrorCode::kConflict, "there is already something at " + target);
  }
  ATHANOR_CHECK_OK(MakePrivate(target));
  auto copied = [&]() -> Status {
    ATHANOR_TRY(auto copier, SqliteConnection::Open(path, role));
    ATHANOR_CHECK_OK(copier->CopyInto(target));
    copier.reset();
    ATHANOR_CHECK_OK(SyncFileData(target));
    ATHANOR_CHECK_OK(SyncFolder(DirName(target)));
    ATHANOR_TRY(auto looker, SqliteConnection::Open(target, SqliteConnection::Role::kLooker));
    ATHANOR_TRY(const auto broken, looker->BrokenPages());
    if (broken.empty()) return Ok();
    return Fail(ErrorCode::kUnavailable, "the disk does not keep what is written to it: " + target,
                "dmesg | tail    shows what the disk reported");
  }();
  if (!copied.ok()) ::unlink(target.c_str());
  return copied;
}

class SqliteDatabase final : public Database {
 public:
  // Without a writer: to look at only.
  SqliteDatabase(std::string path, std::unique_ptr<SqliteConnection> writer, std::string notice)
      : path_(std::move(path)), notice_(std::move(notice)), writer_(std::move(writer)) {
    if (!writer_) return;
    writer_->TellLogPages([this](int pages) {
      writer_mutex_.AssertHeld();  // the writer is only used under it
      Committed(pages);
    });
  }
  ~SqliteDatabase() override {
    {
      MutexLock lock(log_mutex_);
      over_ = true;
    }
    log_wanted_.notify_one();
    if (log_thread_.joinable()) log_thread_.join();
  }

  const std::string& notice() const override { return notice_; }
  Status CopyTo(const std::string& target) const override { return CopyDatabase(path_, target); }

  Result<Pages> CheckPages() const override {
    ATHANOR_TRY(auto reader, Borrow());
    const GiveBack give_back{*this, reader};
    Pages pages;
    pages.have_sums = reader->has_page_sums();
    ATHANOR_TRY(pages.broken, reader->BrokenPages());
    return pages;
  }

  Status Write(const std::function<Status(Connection&)>& body) override {
    if (!writer_) return Fail(ErrorCode::kDenied, "the store was opened to look at it only");
    MutexLock lock(writer_mutex_);
    // Nothing more is promised on top of a log that cannot be merged.
    if (!broken_log_.ok()) return broken_log_;
    return writer_->Transaction(body);
  }

  Status Read(const std::function<Status(Connection&)>& body) const override {
    ATHANOR_TRY(auto reader, Borrow());
    const GiveBack give_back{*this, reader};
    return reader->Snapshot(body);
  }

 private:
  struct GiveBack {
    const SqliteDatabase& database;
    std::unique_ptr<SqliteConnection>& reader;
    ~GiveBack() {
      {
        MutexLock lock(database.readers_mutex_);
        database.idle_.push_back(std::move(reader));
      }
      database.returned_.notify_one();
    }
  };

  Result<std::unique_ptr<SqliteConnection>> Borrow() const {
    MutexLock lock(readers_mutex_);
    returned_.wait(
        lock, [&]() REQUIRES(readers_mutex_) { return !idle_.empty() || readers_ < kMostReaders; });
    if (!idle_.empty()) {
      auto reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
    auto reader = SqliteConnection::Open(
        path_, writer_ ? SqliteConnection::Role::kReader : SqliteConnection::Role::kLooker);
    if (reader) ++readers_;
    return reader;
  }

  // After each commit.
  void Committed(int pages) REQUIRES(writer_mutex_) {
    if (pages < kLongLog) return;
    if (pages >= kTooLongLog) {
      if (auto taken = writer_->TakeLogIn(); !taken.ok()) broken_log_ = taken;
      return;
    }
    if (!log_thread_.joinable()) log_thread_ = std::thread([this] { CareForLog(); });
    {
      MutexLock lock(log_mutex_);
      log_is_long_ = true;
    }
    log_wanted_.notify_one();
  }

  // The writer waits only for what it wrote meanwhile. It must wait for that: a log starts again
  // only when all of it is in the file; otherwise it grows for as long as there is something to
  // write.
  void CareForLog() {
    const auto care = SqliteConnection::Open(path_, SqliteConnection::Role::kWriter);
    while (true) {
      {
        MutexLock lock(log_mutex_);
        log_wanted_.wait(lock, [&]() REQUIRES(log_mutex_) { return over_ || log_is_long_; });
        if (over_) return;
      }
      if (care) (void)(*care)->TakeLogIn().ok();
      if (care) (void)(*care)->TakeLogIn().ok();
      MutexLock writer_lock(writer_mutex_);
      if (care) broken_log_ = (*care)->TakeLogIn();
      MutexLock lock(log_mutex_);
      log_is_long_ = false;
    }
  }

  const std::string path_;
  const std::string notice_;
  Mutex writer_mutex_;
  const std::unique_ptr<SqliteConnection> writer_;  // used under writer_mutex_
  Status broken_log_ GUARDED_BY(writer_mutex_);
  mutable Mutex readers_mutex_;
  mutable CondVar returned_;
  mutable std::vector<std::unique_ptr<SqliteConnection>> idle_ GUARDED_BY(readers_mutex_);
  mutable size_t readers_ GUARDED_BY(readers_mutex_) = 0;
  Mutex log_mutex_;
  CondVar log_wanted_;
  bool log_is_long_ GUARDED_BY(log_mutex_) = false;
  bool over_ GUARDED_BY(log_mutex_) = false;
  std::thread log_thread_ GUARDED_BY(writer_mutex_);  // started with the first long log
};

// SQLite would make the file readable by all; its -wal and -shm take this one's mode.
Result<int64_t> Number(Connection& connection, std::string_view sql) {
  ATHANOR_TRY(auto* statement, connection.Prepare(sql));
  ATHANOR_TRY(const bool row, statement->Step());
  const int64_t value = row ? statement->Int(0) : 0;
  statement->Reset();
  return value;
}

Status CheckOurs(Connection& connection, const std::string& path, int64_t version, int newest) {
  if (version > newest) {
    return Fail(
        Error{ErrorCode::kConflict, "this store was written by a newer athanor",
              "install that version or set ATHANOR_HOME to another folder"}
            .Why(fmt::format("{} has version {}, this program knows {}", path, version, newest)));
  }
  ATHANOR_TRY(const int64_t owner, Number(connection, "PRAGMA application_id"));
  ATHANOR_TRY(const int64_t tables, Number(connection, "SELECT count(*) FROM sqlite_master"));
  if (owner == kPlainApplication || owner == kCheckedApplication || tables == 0) return Ok();
  return Fail(Error{ErrorCode::kCorrupt, "this is another program's database",
                    "set ATHANOR_HOME to another folder"}
                  .Why(path));
}

// The file as it was before it is migrated, for the program that wrote it: without page checksums
// if it had none. One of the same version is replaced: it is older.
Result<std::string> KeepCopy(const std::string& path, int64_t version, bool sums) {
  const std::string kept = fmt::format("{}.v{}", path, version);
  const std::string partial = kept + ".partial";
  ::unlink(partial.c_str());
  auto copied = CopyDatabase(
      path, partial, sums ? SqliteConnection::Role::kCopier : SqliteConnection::Role::kPlainCopier);
  if (!copied.ok()) {
    Error error = copied.error();
    error.what = "no copy of the store could be kept, so it was not migrated: " + error.what;
    return Fail(std::move(error));
  }
  if (::rename(partial.c_str(), kept.c_str()) != 0) return FailErrno("rename to " + kept, errno);
  ATHANOR_CHECK_OK(SyncFolder(DirName(path)));
  return kept;
}

int NewestOf(std::span<const Migration> migrations) {
  return migrations.empty() ? 0 : migrations.back().version;
}

std::string ApplicationOf(bool sums) {
  return fmt::format("PRAGMA application_id={};", sums ? kCheckedApplication : kPlainApplication);
}

Status TakeTo(Connection& inside, int64_t version, std::span<const Migration> migrations,
              bool sums) {
  for (const Migration& migration : migrations) {
    if (migration.version > version) ATHANOR_CHECK_OK(inside.Execute(migration.sql));
  }
  return inside.Execute(ApplicationOf(sums) +
                        fmt::format("PRAGMA user_version={};", NewestOf(migrations)));
}

// What to report about it; empty if there was nothing to do.
Result<std::string> Migrate(SqliteConnection& connection, const std::string& path,
                            std::span<const Migration> migrations) {
  const int newest = NewestOf(migrations);
  ATHANOR_TRY(const int64_t found, Number(connection, "PRAGMA user_version"));
  ATHANOR_CHECK_OK(CheckOurs(connection, path, found, newest));
  ATHANOR_CHECK_OK(connection.UseLog());
  if (found == newest) return std::string();
  std::string notice;
  if (found > 0) {
    ATHANOR_TRY(const std::string kept, KeepCopy(path, found, connection.has_page_sums()));
    notice = fmt::format("the store was taken from version {} to {}; as it was before: {}", found,
                         newest, kept);
  }
  ATHANOR_CHECK_OK(connection.Transaction([&](Connection& inside) -> Status {
    // Again under the lock: another process may have been faster.
    ATHANOR_TRY(const int64_t version, Number(inside, "PRAGMA user_version"));
    ATHANOR_CHECK_OK(CheckOurs(inside, path, version, newest));
    return TakeTo(inside, version, migrations, connection.has_page_sums());
  }));
  return notice;
}

// A copy of `path` with page checksums, complete and on the disk, at `made`.
Status CopyWithSums(const std::string& path, const std::string& made) {
  ::unlink(made.c_str());
  ATHANOR_CHECK_OK(CopyDatabase(path, made));
  Status ready = [&]() -> Status {
    ATHANOR_TRY(auto maker, SqliteConnection::Open(made, SqliteConnection::Role::kWriter));
    ATHANOR_CHECK_OK(maker->Execute("PRAGMA journal_mode=MEMORY;" + ApplicationOf(true)));
    return maker->UseLog();
  }();
  if (!ready.ok()) ::unlink(made.c_str());
  return ready;
}

// Replaces a file without page checksums by one with them. `writer` is closed for it: the last to
// close merges the log and removes it, so none is left that could be taken for the new file's.
Status GiveSums(const std::string& path, std::unique_ptr<SqliteConnection>& writer, bool keep) {
  const std::string made = path + ".sums.partial";
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return FailErrno("stat " + path, errno);
  struct stat log {};
  if (::stat((path + "-wal").c_str(), &log) != 0) log.st_size = 0;
  ATHANOR_TRY(const uint64_t room, FreeBytes(DirName(path)));
  if (room < static_cast<uint64_t>(info.st_size + log.st_size) + kRoomToSpare) {
    return Fail(ErrorCode::kExhausted, "the disk of the store has no room for a copy of it",
                "df -h " + ShellQuote(DirName(path)));
  }
  ATHANOR_CHECK_OK(CopyWithSums(path, made));
  writer.reset();
  Status placed = [&]() -> Status {
    if (Exists(path + "-wal")) {
      return Fail(ErrorCode::kUnavailable, "another process uses the store", "ath server status");
    }
    ATHANOR_CHECK_OK(SyncFolder(DirName(path)));
    const std::string plain = path + ".plain";
    if (keep) {
      ::unlink(plain.c_str());
      if (::link(path.c_str(), plain.c_str()) != 0) return FailErrno("link " + plain, errno);
    }
    if (::rename(made.c_str(), path.c_str()) != 0) return FailErrno("rename " + made, errno);
    return SyncFolder(DirName(path));
  }();
  if (!placed.ok()) ::unlink(made.c_str());
  return placed;
}

void AddTo(std::string& notice, const std::string& more) {
  if (!more.empty()) notice += (notice.empty() ? "" : ". ") + more;
}

// A new file is made next to its path and moved there when it is complete, so that the disk waits
// once and not for every step. If that is not possible, nothing is left and Open creates it in
// place.
Status MakeFresh(const std::string& path, std::span<const Migration> migrations) {
  const std::string made = fmt::format("{}.new.{}", path, ::getpid());
  ::unlink(made.c_str());
  ATHANOR_CHECK_OK(MakePrivate(made));
  const Status filled = [&]() -> Status {
    ATHANOR_TRY(auto maker, SqliteConnection::Open(made, SqliteConnection::Role::kWriter));
    ATHANOR_CHECK_OK(maker->Execute("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF;"));
    ATHANOR_CHECK_OK(maker->Transaction(
        [&](Connection& inside) { return TakeTo(inside, 0, migrations, true); }));
    // The change to a log writes the first page, and this commit syncs the file.
    ATHANOR_CHECK_OK(maker->Execute("PRAGMA synchronous=FULL;"));
    return maker->UseLog();
  }();
  const bool moved = filled.ok() && ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(),
                                                RENAME_NOREPLACE) == 0;
  if (!moved) ::unlink(made.c_str());
  return moved ? SyncFolder(DirName(path)) : filled;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                 std::span<const Migration> migrations) {
  if (!Exists(path)) ATHANOR_CHECK_OK(MakeFresh(path, migrations));
  ATHANOR_CHECK_OK(MakePrivate(path));
  ATHANOR_TRY(std::string notice, MendLog(path));
  ATHANOR_TRY(auto writer, SqliteConnection::Open(path, SqliteConnection::Role::kWriter));
  ATHANOR_TRY(const std::string migrated, Migrate(*writer, path, migrations));
  AddTo(notice, migrated);
  if (!writer->has_page_sums()) {
    const auto given = GiveSums(path, writer, migrated.empty());
    if (!writer) {
      ATHANOR_TRY(writer, SqliteConnection::Open(path, SqliteConnection::Role::kWriter));
      ATHANOR_CHECK_OK(writer->UseLog());
    }
    if (given.ok()) {
      AddTo(notice, "the pages of the store were given sums, by which damage is noticed" +
                        (migrated.empty() ? "; as it was before: " + path + ".plain" : ""));
    } else {
      AddTo(notice,
            "damage of the store will not be noticed: its pages could not be given sums "
            "yet, which the next start tries again: " +
                given.error().what);
    }
  }
  // A backup's copy of a file without checksums has them, but not the application id.
  ATHANOR_TRY(const int64_t application, Number(*writer, "PRAGMA application_id"));
  if (writer->has_page_sums() && application != kCheckedApplication) {
    ATHANOR_CHECK_OK(writer->Execute(ApplicationOf(true)));
  }
  return std::make_unique<SqliteDatabase>(path, std::move(writer), std::move(notice));
}

Result<std::unique_ptr<Database>> Database::OpenToLook(const std::string& path,
                                                       std::span<const Migration> migrations) {
  if (!Exists(path)) {
    return Fail(ErrorCode::kNotFound, "there is no store at " + path,
                "is ATHANOR_HOME the right folder?");
  }
  {
    ATHANOR_TRY(auto looker, SqliteConnection::Open(path, SqliteConnection::Role::kLooker));
    ATHANOR_TRY(const int64_t version, Number(*looker, "PRAGMA user_version"));
    ATHANOR_CHECK_OK(CheckOurs(*looker, path, version, NewestOf(migrations)));
  }
  return std::make_unique<SqliteDatabase>(path, nullptr, std::string());
}

}  // namespace athanor
