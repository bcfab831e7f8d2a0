#include "run/supervisor/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace athanor::supervisor {
namespace {

constexpr int kPipeSizes[] = {1 << 20, 1 << 18};  // 64 KiB is what it has anyway
constexpr int64_t kChunk = 1 << 20;

bool IsFullDisk(int error) { return error == ENOSPC || error == EDQUOT; }

}  // namespace

Result<OutputStream> OutputStream::Open(const std::string& path, int64_t cap, int64_t uid,
                                        int64_t gid) {
  OutputStream stream;
  stream.cap_ = cap;
  // splice(2) refuses O_APPEND files, so the offset is kept here.
  stream.file_.reset(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600));
  if (!stream.file_) return FailErrno("open " + path, errno);
  struct stat info {};
  if (::fstat(stream.file_.get(), &info) == 0 && S_ISREG(info.st_mode)) {
    stream.offset_ = info.st_size;
    stream.end_.written = info.st_size;
  }
  stream.null_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!stream.null_) return FailErrno("open /dev/null", errno);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("make a pipe", errno);
  stream.read_end_.reset(ends[0]);
  stream.write_end_.reset(ends[1]);
  for (int size : kPipeSizes) {
    if (::fcntl(ends[1], F_SETPIPE_SZ, size) >= 0) break;
  }
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return FailErrno("fcntl on a pipe", errno);
  if (uid >= 0 || gid >= 0) {
    (void)!::fchown(ends[1], static_cast<uid_t>(uid), static_cast<gid_t>(gid));
  }
  return stream;
}

int64_t OutputStream::Drain(int64_t limit) {
  int64_t taken = 0;
  waits_for_room_ = false;
  while (open() && taken < limit) {
    const int64_t room = cap_ - kept_;
    const bool keep = room > 0;
    int64_t n = keep ? MoveToFile(std::min(room, kChunk)) : MoveToNowhere(kChunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (n < 0 && keep) {
      end_.write_errno = errno;
      if (IsFullDisk(errno)) {
        waits_for_room_ = true;
        break;
      }
      // A broken disk does not recover by waiting: what cannot be written now is lost, and the next
      // bytes try again.
      n = MoveToNowhere(kChunk);
      if (n > 0) gap_ += n;
    } else if (n > 0 && IsFullDisk(static_cast<int>(end_.write_errno))) {
      end_.write_errno = 0;  // there is room again, and nothing was lost
    }
    if (n < 0) break;
    if (n == 0) {
      Close();
      break;
    }
    taken += n;
    if (!keep && !end_.capped) {
      end_.capped = true;
      Note("\n[athanor] output cap of " + std::to_string(cap_) +
           " bytes reached; what follows is not kept\n");
    }
  }
  return taken;
}

void OutputStream::GiveUpWaiting() {
  waits_for_room_ = false;
  end_.dropped += static_cast<int64_t>(held_.size());
  held_.clear();
  while (open() && MoveToNowhere(kChunk) > 0) {
  }
}

int64_t OutputStream::MoveToFile(int64_t limit) {
  if (gap_ > 0) {
    const int64_t before = offset_;
    Note("\n[athanor] " + std::to_string(gap_) +
         " bytes of output lost here: " + std::strerror(static_cast<int>(end_.write_errno)) + "\n");
    if (offset_ == before) return errno = static_cast<int>(end_.write_errno), -1;
    gap_ = 0;
  }
  if (!splice_works_) return CopyToFile(limit);
  loff_t at = offset_;
  const ssize_t n = ::splice(read_end_.get(), nullptr, file_.get(), &at, static_cast<size_t>(limit),
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n < 0 && errno == EINVAL) {
    splice_works_ = false;
    return CopyToFile(limit);
  }
  if (n > 0) {
    offset_ += n;
    kept_ += n;
    end_.written = offset_;
  }
  return n;
}

int64_t OutputStream::CopyToFile(int64_t limit) {
  if (held_.empty()) {
    held_.resize(static_cast<size_t>(std::min<int64_t>(limit, 65536)));
    const ssize_t n = ::read(read_end_.get(), held_.data(), held_.size());
    const int error = errno;
    held_.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) return errno = error, n;
  }
  return WriteHeld();
}

int64_t OutputStream::WriteHeld() {
  const auto size = static_cast<int64_t>(held_.size());
  int64_t done = 0;
  int error = 0;
  while (done < size && error == 0) {
    const ssize_t w =
        ::pwrite(file_.get(), held_.data() + done, static_cast<size_t>(size - done), offset_);
    if (w < 0 && errno == EINTR) continue;
    if (w <= 0) {
      error = w < 0 ? errno : EIO;
      continue;
    }
    done += w;
    offset_ += w;
    kept_ += w;
    end_.written = offset_;
  }
  if (error != 0 && IsFullDisk(error)) {
    held_.erase(0, static_cast<size_t>(done));
    return done > 0 ? done : (errno = error, -1);
  }
  if (error != 0) {
    end_.write_errno = error;
    end_.dropped += size - done;
    gap_ += size - done;
  }
  held_.clear();
  return size;
}

int64_t OutputStream::MoveToNowhere(int64_t limit) {
  const ssize_t n = ::splice(read_end_.get(), nullptr, null_.get(), nullptr,
                             static_cast<size_t>(limit), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n > 0) end_.dropped += n;
  return n;
}

void OutputStream::Note(const std::string& text) {
  const ssize_t n = ::pwrite(file_.get(), text.data(), text.size(), offset_);
  if (n <= 0) return;
  if (static_cast<size_t>(n) < text.size()) {
    // Half a note is useless; the next try overwrites it.
    if (::ftruncate(file_.get(), offset_) == 0) return;
  }
  offset_ += n;
  end_.written = offset_;
}

void OutputStream::Close() { read_end_.reset(); }

void OutputStream::Sync() { (void)::fdatasync(file_.get()); }

}  // namespace athanor::supervisor
