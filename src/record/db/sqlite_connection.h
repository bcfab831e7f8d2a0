// One SQLite connection with its prepared statements, and the one place where
// SQLite's result codes become Errors. Used by Database only.
//
// Threads: one at a time; the owner makes sure of that.
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
  // Copies by a copier have page checksums (checked_vfs.h), those by a plain copier have none.
  enum class Role { kWriter, kReader, kLooker, kCopier, kPlainCopier };
  // Opens an existing file and sets its pragmas; only a writer can change anything. A looker and a
  // copier also do not touch the log if they are the last to close the file. An empty file becomes
  // one with page checksums. kDenied: no permission, or the file is read-only. kCorrupt: not a
  // database.
  static Result<std::unique_ptr<SqliteConnection>> Open(const std::string& path, Role role);
  ~SqliteConnection() override;
  // Turns the file to WAL mode, permanently. kUnavailable: its file system does not support it.
  Status UseLog();
  // From now on, only TakeLogIn merges the log into the file. After each commit, `told` is called
  // with the number of pages in the log, on the committing thread and inside the commit.
  void TellLogPages(std::function<void(int pages)> told);
  // Merges as far as no reader of an older state prevents it. A failure leaves the log as it is,
  // and is returned only if it is kCorrupt.
  Status TakeLogIn();
  bool has_page_sums() const;
  // The numbers of the damaged pages in the file.
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
