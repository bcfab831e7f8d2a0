// The file calls that series and logs share, for files that only grow. They are written at an
// offset that the caller keeps, so that a failed write can be undone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

// Writes all of `bytes` at `at`, which must be the file's end as the caller knows it; creates the
// file (0600) when `at` is 0. Bytes beyond `at` are left from an earlier failed write and are cut
// off. After any error the file is cut back to `at`: all or nothing. kExhausted: no space.
// kCorrupt: the file is shorter.
Status AppendAt(const std::string& path, uint64_t at, std::string_view bytes);
// The same through a descriptor that may already be open; it is opened again if there is none, or
// if its file is no longer the one at `path`.
Status AppendAt(UniqueFd& fd, const std::string& path, uint64_t at, std::string_view bytes);
// Best effort: what cannot be cut now is cut by the next AppendAt.
void CutTo(const std::string& path, uint64_t length);

// If the file is missing, there is nothing to sync.
Status SyncFileData(const std::string& path);
Status SyncFolder(const std::string& path);

Result<UniqueFd> OpenToRead(const std::string& path);
// Up to `size` bytes at `at`; fewer only at the end of the file.
Result<std::string> ReadAt(int fd, uint64_t at, size_t size);

}  // namespace athanor
