#include "record/db/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/io/fd.h"
#include "base/io/files.h"

namespace athanor {

DiskReserve::DiskReserve(std::string path, uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  struct stat info {};
  held_ = ::stat(path_.c_str(), &info) == 0 && static_cast<uint64_t>(info.st_size) == bytes_ &&
          static_cast<uint64_t>(info.st_blocks) * 512 >= bytes_;
  Refill();
}

bool DiskReserve::Release() {
  ::unlink(path_.c_str());
  return std::exchange(held_, false);
}

void DiskReserve::Refill() {
  if (held_) return;
  const auto free = FreeBytes(DirName(path_));
  if (!free || *free < kTimes * bytes_) return;
  const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // If blocks cannot be reserved, a hole would not help: then there is no reserve.
  held_ = fd && ::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes_)) == 0;
  if (!held_) ::unlink(path_.c_str());
}

}  // namespace athanor
