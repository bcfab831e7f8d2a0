// A backup is a copy of everything a server keeps, made while it runs or not: a folder,
// or one archive (.tar, .tar.gz, .tar.zst). It holds the database, the keys, settings,
// logs, series, blobs, objects and checkpoints; not the attempts' folders, since what runs
// belongs to the server that started it, and not the cache.
//
// Consistent without stopping anything: the database is copied first, as one moment's
// state, and what it names was stored before it was named. Blobs never change, and a
// sweep that removes some does not run beside a backup; logs and series only grow, so later copies are longer, never
// shorter, and what is beyond the database's moment is of no consequence. Jobs that
// came after that moment are left out. docs/durability.md says more.
//
// Threads: one backup at a time per home; kConflict otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "record/layout.h"

namespace athanor {

struct BackupInfo {
  std::string path;  // of the folder or archive
  std::string version;  // of the program that made it
  std::string home;     // what it is a copy of
  WallTime made;        // the moment of the database
  int64_t schema = 0;
  uint64_t jobs = 0;
  uint64_t live = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t linked = 0;     // of the files, shared with the home instead of copied
  bool secret_key = false;  // the key that opens the secrets is in it
};

// Writes to `<target>.partial` and renames at the end: what has the name `target` is whole.
// `target` is absolute and must not exist (an empty folder will do). A folder on the
// home's own file system shares the blobs by hard links. Everything is readable by the
// owner only, and on disk when this returns. kConflict: there is something at `target`,
// or it lies inside the home. kExhausted: no room; nothing is left behind.
Result<BackupInfo> MakeBackup(const StoreLayout& layout, const std::string& target,
                              const std::string& version);

// Lays a backup out in `folder`, which must be empty, as a home: all of it, copied.
// kInvalid: `from` is no backup. kConflict: made by a newer program.
Result<BackupInfo> UnpackBackup(const std::string& from, const std::string& folder);

// Held by a backup, and by whatever must not run beside one; dies with its holder. kConflict:
// another holds it.
Result<UniqueFd> LockBackups(const StoreLayout& layout);

}  // namespace athanor
