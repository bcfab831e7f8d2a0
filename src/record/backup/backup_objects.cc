#include "record/backup/backup_objects.h"

#include <unistd.h>

#include <set>
#include <string>

#include "base/io/files.h"
#include "record/backup/copy_tree.h"
#include "record/db/database.h"
#include "record/objects/directory_object_store.h"

namespace athanor {
namespace {

constexpr int kMostTries = 20;

Result<std::set<std::string>> FilesIn(const std::string& index_path) {
  ATHANOR_TRY(auto index, Database::OpenToLook(index_path, ObjectMigrations()));
  std::set<std::string> files;
  ATHANOR_CHECK_OK(index->Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* rows, connection.Prepare("SELECT content FROM objects WHERE parts < 2 "
                                               "UNION ALL SELECT file FROM segments "
                                               "UNION ALL SELECT file FROM parts"));
    while (true) {
      ATHANOR_TRY(const bool row, rows->Step());
      if (!row) return Ok();
      files.emplace(rows->Text(0));
    }
  }));
  return files;
}

}  // namespace

Status CopyObjects(const StoreLayout& from, const StoreLayout& to, TreeCopy& copy) {
  if (!Exists(from.object_index())) return Ok();
  ATHANOR_CHECK_OK(MakeDirs(to.objects() + "/data"));
  ATHANOR_TRY(auto index, Database::OpenToLook(from.object_index(), ObjectMigrations()));
  std::set<std::string> copied;
  for (int tries = 0; tries < kMostTries; ++tries) {
    ::unlink(to.object_index().c_str());
    ATHANOR_CHECK_OK(index->CopyTo(to.object_index()));
    ATHANOR_TRY(const auto files, FilesIn(to.object_index()));
    bool all = true;
    for (const auto& file : files) {
      const std::string target = ObjectFilePath(to.objects(), file);
      if (!copied.contains(file)) {
        ATHANOR_CHECK_OK(copy.Folder(DirName(target)));
        ATHANOR_CHECK_OK(copy.File(ObjectFilePath(from.objects(), file), target));
        if (Exists(target)) copied.insert(file);
      }
      all = all && copied.contains(file);
    }
    if (!all) continue;
    // What an earlier round copied and this index no longer names.
    for (const auto& file : copied) {
      if (!files.contains(file)) ::unlink(ObjectFilePath(to.objects(), file).c_str());
    }
    return Ok();
  }
  return Fail(ErrorCode::kUnavailable, "objects were removed faster than they could be copied",
              "make the backup at a quieter time");
}

}  // namespace athanor
