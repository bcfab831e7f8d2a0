// Makes a store's file anew from its tables, when pages that only indexes (or nothing) use are
// damaged: the tables have everything.
//
// Threads: none; the caller is the only one to use the store (the server's lock).
#pragma once

#include <string>

#include "base/result.h"

namespace athanor {

// Puts a new file in the place of the one at `path`, which is kept as `aside` (on the same disk;
// must not exist). kCorrupt: a table cannot be read. On an error the store is as it was.
Status RebuildDatabase(const std::string& path, const std::string& aside);

}  // namespace athanor
