// The embedded ObjectStore: bytes in files named by id, never by key, and an index in its own
// SQLite file:
//
//   <dir>/index.db            buckets, objects, uploads, parts
//   <dir>/data/ab/<id>        bytes of one object or one part; immutable
//   <dir>/tmp/<id>            on their way in; removed at Open
//
// A file is in place and synced before the index names it, and is removed only after the index has
// stopped naming it. Until then its name is in the index's `trash`, which Open empties. Parts of an
// upload stay as they were sent: completing it writes rows, not bytes. A copy shares the bytes.
// Writes of several threads are committed together.
//
// One process at a time (the server's lock makes sure of that).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/exec/clock.h"
#include "base/exec/pool.h"
#include "record/db/database.h"
#include "record/objects/object_store.h"

namespace athanor {

// `hashers` computes digests while a large body still arrives; null: at its end. It outlives the
// store and its writers. `notice` gets Database::notice of the index.
Result<std::unique_ptr<ObjectStore>> OpenObjectDirectory(std::string dir, const Clock& clock,
                                                         Pool* hashers = nullptr,
                                                         std::string* notice = nullptr);

// The schema of index.db, for code that reads it from outside (fsck, backups).
std::span<const Migration> ObjectMigrations();
std::string ObjectFilePath(std::string_view dir, std::string_view file);  // <dir>/data/ab/<id>

}  // namespace athanor
