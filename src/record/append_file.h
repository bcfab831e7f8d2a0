// The few file calls that series and logs share: files that only grow, written
// at an offset the caller keeps, so that a failed write can be taken back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace athanor {

// Writes all of `bytes` at `at`, which must be the file's end as the caller
// knows it; creates the file (0600) when `at` is 0. What lies beyond `at` is the
// rest of an earlier failed write and is cut. On any error the file is cut back
// to `at`: all or nothing. kExhausted: no space. kCorrupt: the file is shorter.
Status AppendAt(const std::string& path, uint64_t at, std::string_view bytes);
// The same through a descriptor that may be held from before; opened anew when it is none, or
// when its file is no longer the one at `path`.
Status AppendAt(UniqueFd& fd, const std::string& path, uint64_t at, std::string_view bytes);
// Best effort: what cannot be cut now is cut by the next AppendAt.
void CutTo(const std::string& path, uint64_t length);

// A missing file is nothing to sync.
Status SyncFileData(const std::string& path);
Status SyncFolder(const std::string& path);

Result<UniqueFd> OpenToRead(const std::string& path);
// Up to `size` bytes at `at`; fewer only at the end of the file.
Result<std::string> ReadAt(int fd, uint64_t at, size_t size);

}  // namespace athanor
