// The embedded ObjectStore: bytes in files named by id, never by key, and an index in a
// SQLite file of its own:
//
//   <dir>/index.db            buckets, objects, uploads, parts
//   <dir>/data/ab/<id>        bytes of one object or one part; immutable
//   <dir>/tmp/<id>            on their way in; removed at Open
//
// A file is in place and synced before the index names it, and goes only after the index
// has stopped naming it: until then its name lies in the index's `trash`, which Open empties.
// Parts of an upload stay as they came: completing it writes rows, not bytes. A copy shares
// the bytes. Writes of several threads are committed together.
//
// One process at a time (the server's lock sees to it).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/pool.h"
#include "record/db/database.h"
#include "record/objects/object_store.h"

namespace athanor {

// `hashers` is used to compute digests while a large body still arrives; null: at its end.
// It outlives the store and its writers. `notice` gets what Database::notice says of the index.
Result<std::unique_ptr<ObjectStore>> OpenObjectDirectory(std::string dir, const Clock& clock,
                                                         Pool* hashers = nullptr,
                                                         std::string* notice = nullptr);

// The schema of index.db, for those who look at it from outside (fsck, backups).
std::span<const Migration> ObjectMigrations();
std::string ObjectFilePath(std::string_view dir, std::string_view file);  // <dir>/data/ab/<id>

}  // namespace athanor
