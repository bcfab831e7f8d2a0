// CheckedVfs stands between SQLite and the disk: it gives each page of a main database file its
// sum when it is written (page_check.h), and refuses a page that does not have it when it is
// read. Pages travel through the log (WAL) under the log's own sums, which SQLite looks at when
// it takes a log over after a crash; here they are looked at once more when the log is taken into
// the file, so that damage never gets a fresh sum. A file that was made without sums is passed
// through as it is; a new one must be made with kPageCheckBytes reserved.
//
// It works on whatever is SQLite's default file system at the time, as FaultVfs is in tests.
// Nothing is mapped into memory: what is not read through here is not looked at.
//
// Threads: any, as SQLite's own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace athanor {

// The name for sqlite3_open_v2; registers it at the first call.
const char* CheckedVfsName();

// Whether the main file of `handle`, opened through CheckedVfs, has sums, or will have when
// something is written to it.
bool HasPageSums(sqlite3* handle);
// Whether there is nothing in it yet.
bool IsFresh(sqlite3* handle);

struct BrokenPage {
  std::string file;
  uint64_t number = 0;  // of a page, from 1; in a log of a frame, from 1
  bool in_log = false;
};
// What this thread last met when SQLite said SQLITE_IOERR_DATA.
const BrokenPage& LastBrokenPage();

// Reads every page of the main file: the numbers of those that are not as they were written. None
// where the file has no sums. kUnavailable: it cannot be read.
Result<std::vector<uint32_t>> BrokenPagesOf(sqlite3* handle);

}  // namespace athanor
