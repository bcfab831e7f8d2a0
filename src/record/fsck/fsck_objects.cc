// The embedded object store: whether every object has its bytes, and what other files belong to.
#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/db/database.h"
#include "record/fsck/checker.h"
#include "record/objects/digests.h"
#include "record/objects/directory_object_store.h"

namespace athanor {
namespace {

struct NamedFile {
  uint64_t size = 0;
  std::string by;
  std::string md5;  // hex, where the ETag is that of this file; else empty
};

// Every file that the index names: of plain objects, of joined parts, of parts that are not joined
// yet.
Status ReadNames(const Database& index, std::map<std::string, NamedFile>& named,
                 uint64_t& objects) {
  return index.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* rows,
                connection.Prepare("SELECT o.content, o.size, o.etag, o.parts, o.key, b.name "
                                   "FROM objects o LEFT JOIN buckets b ON b.id = o.bucket"));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) break;
      ++objects;
      if (rows->Int(3) > 1) continue;
      named[std::string(rows->Text(0))] = {
          static_cast<uint64_t>(rows->Int(1)),
          fmt::format("object {}/{}", Printable(rows->Text(5)), Printable(rows->Text(4))),
          rows->Int(3) == 0 ? std::string(rows->Text(2)) : std::string()};
    }
    ATHANOR_TRY(auto* segments, connection.Prepare("SELECT s.file, s.size, o.key FROM segments s "
                                                   "LEFT JOIN objects o ON o.content = s.content"));
    while (true) {
      ATHANOR_TRY(const bool row, segments->Step());
      if (!row) break;
      named[std::string(segments->Text(0))] = {static_cast<uint64_t>(segments->Int(1)),
                                               "a part of object " + Printable(segments->Text(2)),
                                               ""};
    }
    ATHANOR_TRY(auto* parts, connection.Prepare("SELECT file, size, etag, upload FROM parts"));
    while (true) {
      ATHANOR_TRY(const bool row, parts->Step());
      if (!row) break;
      named[std::string(parts->Text(0))] = {static_cast<uint64_t>(parts->Int(1)),
                                            "a part of upload " + std::string(parts->Text(3)),
                                            std::string(parts->Text(2))};
    }
    // Known leftovers; the next start removes them.
    ATHANOR_TRY(auto* trash, connection.Prepare("SELECT file FROM trash"));
    while (true) {
      ATHANOR_TRY(const bool row, trash->Step());
      if (!row) return Ok();
      named[std::string(trash->Text(0))] = {UINT64_MAX, "", ""};
    }
  });
}

Status CheckBytes(const std::string& path, const NamedFile& named, bool deep, uint64_t& bytes) {
  ATHANOR_TRY(const UniqueFd fd, OpenToRead(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return FailErrno("stat " + path, errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size != named.size) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{} bytes instead of {}", size, named.size));
  }
  if (!deep || named.md5.empty()) return Ok();
  bytes += size;
  Digester digester({});
  for (uint64_t at = 0; at < size;) {
    ATHANOR_TRY(const std::string piece, ReadAt(fd.get(), at, 1 << 20));
    if (piece.empty()) break;
    digester.Update(piece);
    at += piece.size();
  }
  const std::string found = Hex(digester.Finish().md5);
  if (found == named.md5) return Ok();
  return Fail(ErrorCode::kCorrupt, "its bytes have the MD5 " + found);
}

}  // namespace

Status Checker::CheckObjects() {
  if (!Exists(layout_.object_index())) return Ok();
  CheckLogOf(layout_.object_index());
  ATHANOR_CHECK_OK(CheckPagesOf(layout_.object_index(), ObjectMigrations()));
  auto index = Database::OpenToLook(layout_.object_index(), ObjectMigrations());
  std::map<std::string, NamedFile> named;
  Status read;
  if (index) read = ReadNames(**index, named, report_.objects);
  if (!index || !read.ok()) {
    const Error& error = index ? read.error() : index.error();
    if (error.code == ErrorCode::kConflict) return Fail(error);
    Add("object", "the index of the objects cannot be read", error.what, kRestore,
        layout_.object_index());
    return Ok();
  }
  for (const auto& [file, what] : named) {
    if (what.size == UINT64_MAX) continue;
    const std::string path = ObjectFilePath(layout_.objects(), file);
    const Status right = CheckBytes(path, what, options_.deep, report_.bytes);
    if (right.ok()) continue;
    Add("object", what.by + (Exists(path) ? " is damaged" : " is missing"), right.error().what,
        kRestore, path);
  }
  const auto shards = ListDir(layout_.objects() + "/data");
  for (const auto& shard : shards ? *shards : std::vector<std::string>()) {
    const std::string folder = layout_.objects() + "/data/" + shard;
    const auto files = ListDir(folder);
    for (const auto& file : files ? *files : std::vector<std::string>()) {
      if (named.contains(file)) continue;
      // A kill between the file and the index leaves such a file.
      Finding& finding =
          Add("leftover", "bytes in the object store that no object names", "",
              std::string(kRepair) + "    puts it into lost+found", JoinPath(folder, file));
      if (options_.repair) Settle(finding, PutAside(JoinPath(folder, file)));
    }
  }
  return Ok();
}

}  // namespace athanor
