// The few system calls that the supervisor needs, in a safer form. No allocation that matters, no
// library: this is linked only into the static program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor::supervisor {

int64_t WallMs();
int64_t BoottimeMs();

Result<std::string> ReadWhole(const std::string& path, size_t limit);
std::string ReadWholeAt(int dir_fd, const char* name);  // empty if it cannot be read
bool WriteWhole(int fd, std::string_view bytes);        // errno on false

// A small file that is replaced in one step. Its directory is opened at
// construction, so that mounts made later cannot move it.
class RecordFile {
 public:
  // `reserve` > 0 allocates that much disk now, so that there is room for the record even if the
  // script fills the disk later.
  static Result<RecordFile> Open(const std::string& path, int64_t reserve);

  // The record's folder was removed, so no one will find the record.
  bool FolderGone() const;
  // Releases what is reserved beyond `keep`.
  void ShrinkReserve(int64_t keep);
  // Temporary, rename; with `sync` also fsync of file and folder.
  Status Replace(std::string_view bytes, bool sync);

 private:
  RecordFile() = default;
  std::string path_;
  std::string name_;
  UniqueFd dir_;
  UniqueFd reserved_;  // open temporary with allocated disk space; used up by Replace
};

}  // namespace athanor::supervisor
