// Database is one SQLite file in WAL mode, synchronous=FULL: transactions,
// prepared statements, numbered migrations. Raw SQLite stays in this folder.
//
// Threads: every method of Database is safe from any thread. There are one writer and up to four
// readers, each used by one thread at a time; a call waits for its turn. A body must not call Write
// or Read: it would wait for itself.
//
// Errors: kExhausted (disk full), kDenied (read-only, no permission), kCorrupt, kConflict (a
// constraint), kUnavailable (disk error, another writer). After any of them, nothing of the
// transaction is stored.
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

// A compiled statement with its bindings; made by Connection::Prepare, cached there. A failed Bind
// is reported by the next Step. Bindings stay until they are bound again.
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
  // The statement for `sql`, reset; the same one each time, so use it for one purpose at a time.
  // Valid until the body ends.
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
  // Opens or creates `path` and migrates it to the newest version. kConflict if the file was
  // written by a newer program, kCorrupt if it is not a database or belongs to another program. The
  // file is made 0600; its folder must exist. Before an older file is migrated, a copy is kept next
  // to it, as <path>.v<version>. Migrating is one transaction, so a kill leaves the old version or
  // the new one. Pages have checksums (page_check.h): a damaged page is kCorrupt when it is read. A
  // file without checksums is copied once into one that has them; if there is no room for that, it
  // stays as it is, and the notice says so. A damaged log is kept (broken_log.h) and reported by
  // the notice. No other process may be using the file.
  static Result<std::unique_ptr<Database>> Open(const std::string& path,
                                                std::span<const Migration> migrations);
  // Opens an existing file for reading, in any version up to the newest: nothing is migrated, the
  // log is not merged into the file, and Write is kDenied. Also works while a server runs.
  // kNotFound: there is no such file; otherwise as Open.
  static Result<std::unique_ptr<Database>> OpenToLook(const std::string& path,
                                                      std::span<const Migration> migrations);
  virtual ~Database() = default;

  // Writes everything committed so far to `target` (0600; must not exist), as a snapshot, compact,
  // with page checksums, synced, and read back. Writers do not have to wait.
  virtual Status CopyTo(const std::string& target) const = 0;
  // What Open did to the file that its owner should know; empty: nothing.
  virtual const std::string& notice() const = 0;
  // Whether pages have checksums, and the numbers of damaged pages. Reads the whole file; nothing
  // may be written to it meanwhile.
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
