#include "record/db/rebuild.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "record/append_file.h"
#include "record/db/sqlite_connection.h"

namespace athanor {
namespace {

struct Part {
  std::string type;
  std::string name;
  std::string sql;
};

Result<std::vector<Part>> PartsOf(Connection& connection) {
  std::vector<Part> parts;
  ATHANOR_TRY(auto* rows,
              connection.Prepare("SELECT type, name, sql FROM old.sqlite_master "
                                 "WHERE sql IS NOT NULL ORDER BY type <> 'table', rowid"));
  while (true) {
    ATHANOR_TRY(const bool row, rows->Step());
    if (!row) return parts;
    parts.push_back(
        {std::string(rows->Text(0)), std::string(rows->Text(1)), std::string(rows->Text(2))});
  }
}

Result<int64_t> Number(Connection& connection, std::string_view sql) {
  ATHANOR_TRY(auto* statement, connection.Prepare(sql));
  ATHANOR_CHECK_OK(statement->Step());
  const int64_t value = statement->Int(0);
  statement->Reset();
  return value;
}

std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

Status CopyTables(SqliteConnection& made) {
  ATHANOR_TRY(const auto parts, PartsOf(made));
  ATHANOR_TRY(const int64_t version, Number(made, "PRAGMA old.user_version"));
  ATHANOR_TRY(const int64_t application, Number(made, "PRAGMA old.application_id"));
  return made.Transaction([&](Connection& inside) -> Status {
    bool numbered = false;
    for (const auto& part : parts) {
      // SQLite creates this one itself, with the first table that needs it.
      numbered = numbered || part.name == "sqlite_sequence";
      if (part.name.starts_with("sqlite_")) continue;
      ATHANOR_CHECK_OK(inside.Execute(part.sql));
      if (part.type != "table") continue;
      // With a condition, or SQLite would copy the indexes, too.
      ATHANOR_CHECK_OK(inside.Execute(fmt::format(
          "INSERT INTO main.{0} SELECT * FROM old.{0} NOT INDEXED WHERE 1", Quoted(part.name))));
    }
    if (numbered) {
      ATHANOR_CHECK_OK(
          inside.Execute("DELETE FROM main.sqlite_sequence;"
                         "INSERT INTO main.sqlite_sequence "
                         "SELECT * FROM old.sqlite_sequence WHERE 1"));
    }
    return inside.Execute(fmt::format("PRAGMA main.application_id={}; PRAGMA main.user_version={};",
                                      application, version));
  });
}

Status Fill(const std::string& made, const std::string& path) {
  const UniqueFd file(::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return FailErrno("create " + made, errno);
  ATHANOR_TRY(auto maker, SqliteConnection::Open(made, SqliteConnection::Role::kWriter));
  ATHANOR_CHECK_OK(maker->Execute("PRAGMA foreign_keys=OFF; PRAGMA journal_mode=MEMORY;"));
  ATHANOR_TRY(auto* attach, maker->Prepare("ATTACH ?1 AS old"));
  attach->Bind(1, path);
  ATHANOR_CHECK_OK(attach->Step());
  ATHANOR_CHECK_OK(CopyTables(*maker));
  ATHANOR_CHECK_OK(maker->Execute("DETACH old"));
  ATHANOR_CHECK_OK(maker->UseLog());
  ATHANOR_TRY(const auto broken, maker->BrokenPages());
  if (broken.empty()) return Ok();
  return Fail(ErrorCode::kUnavailable, "the disk does not keep what is written to it: " + made,
              "dmesg | tail    shows what the disk reported");
}

}  // namespace

Status RebuildDatabase(const std::string& path, const std::string& aside) {
  const std::string made = path + ".rebuilt.partial";
  ::unlink(made.c_str());
  Status placed = [&]() -> Status {
    {
      // The last to close the old file merges its log.
      ATHANOR_TRY(auto writer, SqliteConnection::Open(path, SqliteConnection::Role::kWriter));
      ATHANOR_TRY(const int64_t pages, Number(*writer, "PRAGMA page_count"));
      (void)pages;
      ATHANOR_CHECK_OK(Fill(made, path));
    }
    if (Exists(path + "-wal")) {
      return Fail(ErrorCode::kUnavailable, "the log of the store could not be taken in: " + path);
    }
    ATHANOR_CHECK_OK(SyncFolder(DirName(path)));
    if (::link(path.c_str(), aside.c_str()) != 0) return FailErrno("link " + aside, errno);
    if (::rename(made.c_str(), path.c_str()) != 0) return FailErrno("rename " + made, errno);
    return SyncFolder(DirName(path));
  }();
  if (!placed.ok()) ::unlink(made.c_str());
  return placed;
}

}  // namespace athanor
