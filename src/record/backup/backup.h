// A backup is a copy of everything that a server stores, made while it runs or not: a folder, or
// one archive (.tar, .tar.gz, .tar.zst). It holds the database, the keys, settings, logs, series,
// blobs, objects and checkpoints; not the attempts' folders, because running attempts belong to the
// server that started them, and not the cache.
//
// Consistent without stopping anything: the database is copied first, as a snapshot, and everything
// it names was stored before. Blobs never change, and a sweep that removes blobs does not run
// during a backup. Logs and series only grow, so later copies are longer, never shorter, and what
// is newer than the snapshot does no harm. Jobs that came after the snapshot are left out.
// docs/durability.md says more.
//
// Threads: one backup at a time per home; kConflict otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/result.h"
#include "record/layout.h"

namespace athanor {

struct BackupInfo {
  std::string path;     // of the folder or archive
  std::string version;  // of the program that made it
  std::string home;     // what it is a copy of
  WallTime made;        // the time of the snapshot
  int64_t schema = 0;
  uint64_t jobs = 0;
  uint64_t live = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t linked = 0;      // of the files, linked from the home instead of copied
  bool secret_key = false;  // it contains the key that decrypts the secrets
};

// Writes to `<target>.partial` and renames at the end: if `target` exists, it is complete. `target`
// is absolute and must not exist (an empty folder is fine). A folder on the home's file system
// shares the blobs by hard links. Everything is readable by the owner only, and on disk when this
// returns. kConflict: `target` exists, or is inside the home. kExhausted: no room; nothing is left
// behind.
Result<BackupInfo> MakeBackup(const StoreLayout& layout, const std::string& target,
                              const std::string& version);

// Restores a backup into `folder`, which must be empty, as a home: everything is copied. kInvalid:
// `from` is not a backup. kConflict: made by a newer program.
Result<BackupInfo> UnpackBackup(const std::string& from, const std::string& folder);

// Held by a backup, and by everything that must not run during one; released when its holder dies.
// kConflict: another process holds it.
Result<UniqueFd> LockBackups(const StoreLayout& layout);

}  // namespace athanor
