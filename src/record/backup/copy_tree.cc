#include "record/backup/copy_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/ids.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kCopyBytes = 1 << 20;

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// <dir>/ab/<sha256>
bool IsBlob(const std::string& path) {
  const std::string name = BaseName(path);
  const std::string shard = BaseName(DirName(path));
  if (name.size() == 64 && IsLowerHex(name)) return shard == name.substr(0, 2);
  // Bytes of objects: data/ab/<id that ends in ab>.
  return BaseName(DirName(DirName(path))) == "data" && Ulid::Parse(name) && name.size() == 26 &&
         shard == name.substr(24);
}

}  // namespace

Result<std::vector<std::string>> TreeCopy::Names(const std::string& folder) const {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return std::vector<std::string>();
  }
  auto names = ListDir(folder);
  if (!names && names.error().code == ErrorCode::kNotFound) return std::vector<std::string>();
  return names;
}

Status TreeCopy::CopyBytes(int from, int to, uint64_t size, const std::string& path) {
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(kCopyBytes);
  while (size > 0) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(size, kCopyBytes));
    const ssize_t got = ::read(from, buffer_.get(), want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read " + path, errno);
    if (got == 0) return Ok();  // it was cut meanwhile
    ATHANOR_CHECK_OK(WriteAll(to, std::string_view(buffer_.get(), static_cast<size_t>(got))));
    size -= static_cast<uint64_t>(got);
  }
  return Ok();
}

Status TreeCopy::Folder(const std::string& folder) {
  if (folders_.contains(folder)) return Ok();
  ATHANOR_CHECK_OK(MakeDirs(folder));
  folders_.insert(folder);
  return Ok();
}

Status TreeCopy::File(const std::string& from, const std::string& to) {
  struct stat there {};
  if (::lstat(to.c_str(), &there) == 0) return Ok();
  const UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!in) {
    if (errno == ENOENT || errno == ENXIO || errno == ELOOP) return Ok();
    return FailErrno("open " + from, errno);
  }
  struct stat info {};
  if (::fstat(in.get(), &info) != 0) return FailErrno("stat " + from, errno);
  if (!S_ISREG(info.st_mode)) return Ok();
  if (blobs_ == Blobs::kLink && IsBlob(from) && ::link(from.c_str(), to.c_str()) == 0) {
    ++linked_;
  } else {
    const mode_t mode = (info.st_mode & 0700) | 0600;
    const UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!out) return FailErrno("create " + to, errno);
    ATHANOR_CHECK_OK(CopyBytes(in.get(), out.get(), static_cast<uint64_t>(info.st_size), from));
    // Times show when a line was printed that has no entry yet.
    const timespec times[2] = {info.st_atim, info.st_mtim};
    ::futimens(out.get(), times);
  }
  ++files_;
  bytes_ += static_cast<uint64_t>(info.st_size);
  return Ok();
}

Status TreeCopy::Tree(const std::string& from, const std::string& to,
                      const std::vector<std::string>& leave) {
  struct stat info {};
  if (::lstat(from.c_str(), &info) != 0) {
    return errno == ENOENT ? Ok() : Status(FailErrno("stat " + from, errno));
  }
  if (S_ISLNK(info.st_mode)) {
    char target[4096];
    const ssize_t size = ::readlink(from.c_str(), target, sizeof(target) - 1);
    if (size < 0) return Ok();
    target[size] = '\0';
    if (::symlink(target, to.c_str()) == 0 || errno == EEXIST) return Ok();
    return FailErrno("link " + to, errno);
  }
  if (!S_ISDIR(info.st_mode)) return File(from, to);
  ATHANOR_CHECK_OK(Folder(to));
  ATHANOR_TRY(const auto names, Names(from));
  for (const auto& name : names) {
    if (std::find(leave.begin(), leave.end(), name) != leave.end()) continue;
    ATHANOR_CHECK_OK(Tree(JoinPath(from, name), JoinPath(to, name)));
  }
  return Ok();
}

}  // namespace athanor
