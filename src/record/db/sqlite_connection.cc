#include "record/db/sqlite_connection.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/db/checked_vfs.h"
#include "record/db/page_check.h"

namespace athanor {
namespace {

// Lists build their SQL from filters, so the cache needs a limit.
constexpr size_t kMostStatements = 96;
constexpr int kBusyMillis = 5'000;

struct Words {
  ErrorCode code;
  std::string what;
  std::string hint;
};

// A damaged page. Only what is on it cannot be read.
Words ExplainBroken() {
  const BrokenPage& broken = LastBrokenPage();
  return {ErrorCode::kCorrupt,
          fmt::format("the store is damaged: {} {} of {} is not as it was written",
                      broken.in_log ? "frame" : "page", broken.number, broken.file),
          "ath server stop; ath fsck    says what is on it\n"
          "ath server restore BACKUP    (with ATHANOR_HOME set to an empty folder)"};
}

Words Explain(int result, int system_error, const std::string& path) {
  if (result == SQLITE_IOERR_DATA) return ExplainBroken();
  const std::string quoted = ShellQuote(path);
  int primary = result & 0xff;
  // Only these two set errno; after any other it is that of an older failure.
  const bool fresh = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  if (fresh && (system_error == ENOSPC || system_error == EDQUOT)) primary = SQLITE_FULL;
  switch (primary) {
    case SQLITE_FULL:
      return {ErrorCode::kExhausted, "the disk of the store is full",
              fmt::format("df -h {}    make room there, then repeat", ShellQuote(DirName(path)))};
    case SQLITE_NOMEM:
      return {ErrorCode::kExhausted, "no memory left for the store", ""};
    case SQLITE_READONLY:
      return {ErrorCode::kDenied, "the store is read-only",
              fmt::format("chmod u+w {} {}", ShellQuote(DirName(path)), quoted)};
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorCode::kDenied, "the store may not be opened", fmt::format("ls -l {}", quoted)};
    case SQLITE_CANTOPEN:
      return {system_error == EACCES || system_error == EPERM ? ErrorCode::kDenied
                                                              : ErrorCode::kUnavailable,
              "the store cannot be opened", fmt::format("ls -l {}", quoted)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::kCorrupt, "the store is damaged or not a database",
              fmt::format("put a copy of {0} back, or start afresh: mv {0} {0}.damaged", quoted)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable, "another process is writing to the store",
              "ath server status"};
    case SQLITE_CONSTRAINT:
      return {ErrorCode::kConflict, "the store already holds something else under that name", ""};
    case SQLITE_INTERRUPT:
      return {ErrorCode::kCancelled, "the store was interrupted", ""};
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
      return {ErrorCode::kUnavailable, "the disk of the store does not answer",
              "dmesg | tail    shows what the disk reported"};
    default:
      return {ErrorCode::kBug, "the store was asked wrongly", ""};
  }
}

const char* PragmasOf(SqliteConnection::Role role) {
  switch (role) {
    case SqliteConnection::Role::kWriter:
      return "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
             "PRAGMA cache_size=-1024; PRAGMA journal_size_limit=8388608;";
    case SqliteConnection::Role::kReader:
    case SqliteConnection::Role::kLooker:
      return "PRAGMA query_only=ON; PRAGMA cache_size=-512;";
    case SqliteConnection::Role::kPlainCopier:
    case SqliteConnection::Role::kCopier:  // query_only would forbid writing the copy, too
      return "PRAGMA cache_size=-1024;";
  }
  return "";
}

// We do not use SQLite's memory statistics, and keeping them costs a lock each time. This works
// only before its first use; later it is refused, which does no harm.
void CountNoMemory() {
  static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)once;
}

tl::unexpected<Error> FromSqlite(sqlite3* handle, int result, const std::string& path) {
  const int system_error = handle != nullptr ? sqlite3_system_errno(handle) : 0;
  Words words = Explain(result, system_error, path);
  return Fail(Error{words.code, std::move(words.what), std::move(words.hint)}.Why(
      fmt::format("{}: {} (SQLite {})", path,
                  handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(result), result)));
}

}  // namespace

class SqliteStatement final : public Statement {
 public:
  SqliteStatement(sqlite3_stmt* handle, const std::string& path) : handle_(handle), path_(path) {}
  ~SqliteStatement() override { sqlite3_finalize(handle_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  void Bind(int index, int64_t value) override { Keep(sqlite3_bind_int64(handle_, index, value)); }
  void Bind(int index, double value) override { Keep(sqlite3_bind_double(handle_, index, value)); }
  void Bind(int index, std::string_view text) override {
    // A null pointer would bind NULL, and an empty view may hold one.
    Keep(sqlite3_bind_text64(handle_, index, text.data() != nullptr ? text.data() : "", text.size(),
                             SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  void BindNull(int index) override { Keep(sqlite3_bind_null(handle_, index)); }

  Result<bool> Step() override {
    sqlite3* connection = sqlite3_db_handle(handle_);
    if (bind_result_ != SQLITE_OK) {
      const int result = bind_result_;
      Reset();
      return FromSqlite(connection, result, path_);
    }
    const int result = sqlite3_step(handle_);
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) {
      Reset();
      return false;
    }
    // The message must be read before Reset, which repeats the code but may lose errno.
    auto error = FromSqlite(connection, result, path_);
    Reset();
    return error;
  }
  void Reset() override {
    sqlite3_reset(handle_);
    bind_result_ = SQLITE_OK;
  }
  bool busy() const { return sqlite3_stmt_busy(handle_) != 0; }

  int64_t Int(int column) const override { return sqlite3_column_int64(handle_, column); }
  double Double(int column) const override { return sqlite3_column_double(handle_, column); }
  std::string_view Text(int column) const override {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    if (text == nullptr) return {};
    return {text, static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
  }
  bool IsNull(int column) const override {
    return sqlite3_column_type(handle_, column) == SQLITE_NULL;
  }

 private:
  void Keep(int result) {
    if (bind_result_ == SQLITE_OK) bind_result_ = result;
  }

  sqlite3_stmt* handle_;
  const std::string& path_;  // the connection's
  int bind_result_ = SQLITE_OK;
};

SqliteConnection::SqliteConnection(sqlite3* handle, std::string path)
    : handle_(handle), path_(std::move(path)) {}

SqliteConnection::~SqliteConnection() {
  statements_.clear();
  sqlite3_close_v2(handle_);
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path,
                                                                 Role role) {
  CountNoMemory();
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const char* vfs = role == Role::kPlainCopier ? nullptr : CheckedVfsName();
  const int result = sqlite3_open_v2(path.c_str(), &handle, flags, vfs);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(handle, path));
  if (result != SQLITE_OK) return FromSqlite(handle, result, path);
  // If asked for writing, SQLite silently opens a file that it may only read.
  if (sqlite3_db_readonly(handle, "main") == 1) return FromSqlite(nullptr, SQLITE_READONLY, path);
  sqlite3_busy_timeout(handle, kBusyMillis);
  if (role == Role::kCopier || IsFresh(handle)) {
    int reserved = kPageCheckBytes;  // for what is made from here on: a new file, a copy
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  }
  if (role == Role::kLooker || role == Role::kCopier || role == Role::kPlainCopier) {
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  ATHANOR_CHECK_OK(connection->Execute(PragmasOf(role)));
  return connection;
}

Status SqliteConnection::CopyInto(const std::string& target) {
  ATHANOR_TRY(auto* statement, Prepare("VACUUM INTO ?1"));
  statement->Bind(1, target);
  ATHANOR_CHECK_OK(statement->Step());
  return Ok();
}

Status SqliteConnection::UseLog() {
  ATHANOR_TRY(auto* statement, Prepare("PRAGMA journal_mode=WAL"));
  ATHANOR_CHECK_OK(statement->Step());
  const bool used = statement->Text(0) == "wal";
  // The row comes first: only the end of the statement writes the change, and can fail.
  ATHANOR_CHECK_OK(statement->Step());
  if (used) return Ok();
  return Fail(ErrorCode::kUnavailable, "this disk cannot hold the store: " + path_,
              "set ATHANOR_HOME to a folder on a local disk");
}

void SqliteConnection::TellLogPages(std::function<void(int pages)> told) {
  log_told_ = std::move(told);
  const auto hook = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<SqliteConnection*>(self)->log_told_(pages);
    return SQLITE_OK;
  };
  sqlite3_wal_hook(handle_, hook, this);
}

Status SqliteConnection::TakeLogIn() {
  const int result =
      sqlite3_wal_checkpoint_v2(handle_, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (result != SQLITE_IOERR_DATA) return Ok();
  return FromSqlite(handle_, result, path_);
}

bool SqliteConnection::has_page_sums() const { return HasPageSums(handle_); }

Result<std::vector<uint32_t>> SqliteConnection::BrokenPages() { return BrokenPagesOf(handle_); }

Result<Statement*> SqliteConnection::Prepare(std::string_view sql) {
  if (const auto found = statements_.find(sql); found != statements_.end()) {
    found->second->Reset();
    return found->second.get();
  }
  sqlite3_stmt* handle = nullptr;
  const int result = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (result != SQLITE_OK) return FromSqlite(handle_, result, path_);
  auto made = std::make_unique<SqliteStatement>(handle, path_);
  return statements_.emplace(std::string(sql), std::move(made)).first->second.get();
}

Status SqliteConnection::Execute(std::string_view sql) {
  const std::string terminated(sql);
  const int result = sqlite3_exec(handle_, terminated.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return FromSqlite(handle_, result, path_);
  return Ok();
}

Status SqliteConnection::Run(std::string_view sql) {
  ATHANOR_TRY(auto* statement, Prepare(sql));
  ATHANOR_CHECK_OK(statement->Step());
  return Ok();
}

void SqliteConnection::Rollback() {
  Settle();
  // A full disk or a failed write has often rolled back by itself. If even this fails, the next
  // BEGIN reports it.
  if (sqlite3_get_autocommit(handle_) == 0) (void)Run("ROLLBACK");
}

// A statement left on a row would hold its snapshot open and keep the log from shrinking.
void SqliteConnection::Settle() {
  for (auto& [sql, statement] : statements_) {
    if (statement->busy()) statement->Reset();
  }
  if (statements_.size() > kMostStatements) statements_.clear();
}

Status SqliteConnection::Between(std::string_view begin,
                                 const std::function<Status(Connection&)>& body) {
  if (sqlite3_get_autocommit(handle_) == 0) {
    return Fail(ErrorCode::kBug, "a transaction was begun inside another");
  }
  ATHANOR_CHECK_OK(Run(begin));
  Status done;
  try {
    done = body(*this);
  } catch (...) {
    Rollback();
    throw;
  }
  if (done.ok()) {
    Settle();
    done = Run("COMMIT");
  }
  if (!done.ok()) Rollback();
  return done;
}

Status SqliteConnection::Transaction(const std::function<Status(Connection&)>& body) {
  return Between("BEGIN IMMEDIATE", body);
}

Status SqliteConnection::Snapshot(const std::function<Status(Connection&)>& body) {
  return Between("BEGIN", body);
}

}  // namespace athanor
