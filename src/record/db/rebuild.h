// Builds a store's file again from its tables, if pages are damaged that only indexes (or nothing)
// use: the tables have everything.
//
// Threads: none; the caller is the only user of the store (the server's lock).
#pragma once

#include <string>

#include "base/result.h"

namespace athanor {

// Replaces the file at `path` by a new one; the old one is kept as `aside` (on the same disk; must
// not exist). kCorrupt: a table cannot be read. After an error the store is unchanged.
Status RebuildDatabase(const std::string& path, const std::string& aside);

}  // namespace athanor
