// One SQLite connection with its prepared statements, and the one place where
// SQLite's result codes become Errors. Used by Database only.
//
// Threads: one at a time; the owner sees to it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "record/db/database.h"

struct sqlite3;

namespace athanor {

class SqliteStatement;

class SqliteConnection final : public Connection {
 public:
  // A copier's copies have page sums (checked_vfs.h), a plain copier's have none.
  enum class Role { kWriter, kReader, kLooker, kCopier, kPlainCopier };
  // Opens an existing file and sets its pragmas; only a writer can change anything. A looker
  // and a copier also leave the log as it is when they are the last to close the file. An empty
  // file becomes one with page sums.
  // kDenied: no permission, or the file is read-only. kCorrupt: not a database.
  static Result<std::unique_ptr<SqliteConnection>> Open(const std::string& path, Role role);
  ~SqliteConnection() override;
  // Turns the file to WAL mode, where it stays. kUnavailable: its file system cannot.
  Status UseLog();
  // From now on nothing takes the log into the file but TakeLogIn. `told` hears after each commit
  // how many pages the log has, on the thread and inside the call that committed.
  void TellLogPages(std::function<void(int pages)> told);
  // As far as no reader of something older is in the way; a failure leaves the log as it is, and
  // is told when it is kCorrupt.
  Status TakeLogIn();
  bool has_page_sums() const;
  // Of all pages in the file, those that are not as they were written.
  Result<std::vector<uint32_t>> BrokenPages();
  // Copies the database as it is now into `target`, which must be an empty file. Copiers only.
  Status CopyInto(const std::string& target);

  Result<Statement*> Prepare(std::string_view sql) override;
  Status Execute(std::string_view sql) override;
  Status Transaction(const std::function<Status(Connection&)>& body) override;
  // The same between BEGIN and COMMIT without a write lock: one snapshot for all of `body`.
  Status Snapshot(const std::function<Status(Connection&)>& body);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  SqliteConnection(sqlite3* handle, std::string path);
  Status Between(std::string_view begin, const std::function<Status(Connection&)>& body);
  Status Run(std::string_view sql);
  void Rollback();
  void Settle();

  sqlite3* handle_;
  const std::string path_;
  std::function<void(int pages)> log_told_;
  std::unordered_map<std::string, std::unique_ptr<SqliteStatement>, Hash, std::equal_to<>>
      statements_;
};

}  // namespace athanor
