// Database is one SQLite file in WAL mode, synchronous=FULL: transactions,
// prepared statements, numbered migrations. Raw SQLite stays in this folder.
//
// Threads: every method of Database is safe from any thread. It hands out one
// writer and up to four readers, each used by one thread at a time; a call waits
// for its turn. A body must not call Write or Read again: it would wait for itself.
//
// Errors: kExhausted (disk full), kDenied (read-only, no permission), kCorrupt,
// kConflict (a constraint), kUnavailable (disk error, another writer). After any
// of them nothing of the transaction is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

// A compiled statement with its bindings; made by Connection::Prepare, cached there.
// A failed Bind is reported by the next Step. Bindings stay until bound anew.
class Statement {
 public:
  virtual ~Statement() = default;
  virtual void Bind(int index, int64_t value) = 0;  // 1-based
  virtual void Bind(int index, double value) = 0;
  virtual void Bind(int index, std::string_view text) = 0;
  virtual void BindNull(int index) = 0;
  // True while there is a row. After false the statement is reset for new bindings.
  virtual Result<bool> Step() = 0;
  virtual void Reset() = 0;
  virtual int64_t Int(int column) const = 0;  // 0-based
  virtual double Double(int column) const = 0;
  virtual std::string_view Text(int column) const = 0;  // valid until the next Step
  virtual bool IsNull(int column) const = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;
  // The statement for `sql`, reset; the same one each time, so it serves one use at a
  // time. Valid until the body ends.
  virtual Result<Statement*> Prepare(std::string_view sql) = 0;
  virtual Status Execute(std::string_view sql) = 0;
  // Runs `body` between BEGIN IMMEDIATE and COMMIT; any error rolls back.
  virtual Status Transaction(const std::function<Status(Connection&)>& body) = 0;
};

struct Migration {
  int version;
  std::string_view sql;
};

class Database {
 public:
  // Opens or creates `path`, takes it to the newest migration. kConflict when the
  // file was written by a newer program, kCorrupt when it is not a database or another
  // program's. The file is made 0600; its folder must exist.
  // Before an older file is migrated, a copy of it is kept beside it, as <path>.v<version>;
  // migrating is one transaction, so a kill leaves the old version or the new one.
  // Pages have sums (page_check.h): one that is not as it was written is kCorrupt when it is read.
  // A file of before there were sums is copied once into one that has them; where there is no
  // room for that it stays as it is, and the notice says so. A log that was damaged is kept aside
  // (broken_log.h) and told by the notice: nobody else may be using the file.
  static Result<std::unique_ptr<Database>> Open(const std::string& path,
                                                std::span<const Migration> migrations);
  // Opens an existing file to look at it, in whatever version up to the newest: nothing is
  // migrated, nor the log taken into the file, and Write is kDenied. Works beside a running
  // server too. kNotFound: there is no such file; else as Open.
  static Result<std::unique_ptr<Database>> OpenToLook(const std::string& path,
                                                      std::span<const Migration> migrations);
  virtual ~Database() = default;

  // Writes all that was committed so far to `target` (0600; must not exist), as one
  // moment's state, compact, with page sums, synced, and read back. Writers are not kept waiting.
  virtual Status CopyTo(const std::string& target) const = 0;
  // What Open did to the file that its owner should be told; empty: nothing.
  virtual const std::string& notice() const = 0;
  // Whether pages have sums, and the numbers of those that are not as they were written; reads
  // the whole file, in which nothing may be written meanwhile.
  struct Pages {
    bool have_sums = false;
    std::vector<uint32_t> broken;
  };
  virtual Result<Pages> CheckPages() const = 0;

  virtual Status Write(const std::function<Status(Connection&)>& body) = 0;  // one transaction
  // One snapshot for all of `body`, at least as new as the last Write that returned.
  virtual Status Read(const std::function<Status(Connection&)>& body) const = 0;
};

// The schema of the server's store.
std::span<const Migration> ServerMigrations();

}  // namespace athanor
