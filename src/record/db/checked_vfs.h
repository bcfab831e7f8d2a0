// CheckedVfs is between SQLite and the disk. It adds a checksum to each page of a main database
// file when the page is written (page_check.h), and refuses a page with a wrong checksum when it is
// read. Pages in the log (WAL) have the log's own checksums, which SQLite verifies when it applies
// a log after a crash. Here they are verified again when the log is merged into the file, so that
// damaged data never gets a new checksum. A file that was made without checksums is passed through
// unchanged; a new one must be made with kPageCheckBytes reserved.
//
// It works on SQLite's current default file system, which is FaultVfs in tests. Nothing is mapped
// into memory: what is not read through here is not checked.
//
// Threads: any, as SQLite's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace athanor {

// The name for sqlite3_open_v2; registers the VFS at the first call.
const char* CheckedVfsName();

// Whether the main file of `handle`, opened through CheckedVfs, has checksums, or will have them
// when something is written to it.
bool HasPageSums(sqlite3* handle);
// Whether it is still empty.
bool IsFresh(sqlite3* handle);

struct BrokenPage {
  std::string file;
  uint64_t number = 0;  // of a page, from 1; in a log of a frame, from 1
  bool in_log = false;
};
// The damage that this thread found last when SQLite returned SQLITE_IOERR_DATA.
const BrokenPage& LastBrokenPage();

// Reads every page of the main file: the numbers of the damaged ones. None if the file has no
// checksums. kUnavailable: it cannot be read.
Result<std::vector<uint32_t>> BrokenPagesOf(sqlite3* handle);

}  // namespace athanor
