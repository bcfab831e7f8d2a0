#include "net/transport.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace athanor {
namespace {

// sendfile has no MSG_NOSIGNAL: the signal is blocked, and consumed if it came. Only during the
// call, because processes that this thread starts would inherit the mask.
class NoSigPipe {
 public:
  NoSigPipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigPipe() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  void Take() const {
    const int error = errno;
    const timespec at_once{0, 0};
    ::sigtimedwait(&pipe_, nullptr, &at_once);
    errno = error;
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
};

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int fd) : fd_(fd) {}

  Outcome Read(char* buffer, size_t size) override {
    for (;;) {
      const ssize_t got = ::recv(fd_, buffer, size, MSG_DONTWAIT);
      if (got > 0) {
        return {Io::kDone, static_cast<size_t>(got), static_cast<size_t>(got) < size};
      }
      if (got == 0) return {Io::kEof, 0};
      if (errno == EINTR) continue;
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Io::kWantRead : Io::kError, 0};
    }
  }

  Outcome Write(std::string_view bytes, bool more) override {
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    for (;;) {
      const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), flags);
      if (put > 0) return {Io::kDone, static_cast<size_t>(put)};
      if (put < 0 && errno == EINTR) continue;
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Io::kWantWrite : Io::kError, 0};
    }
  }

  Outcome SendFile(int file, uint64_t offset, size_t size) override {
    for (;;) {
      off_t at = static_cast<off_t>(offset);
      const NoSigPipe quiet;
      const ssize_t put = ::sendfile(fd_, file, &at, size);
      if (put < 0 && errno == EPIPE) quiet.Take();
      if (put >= 0) return {Io::kDone, static_cast<size_t>(put)};
      if (errno == EINTR) continue;
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Io::kWantWrite : Io::kError, 0};
    }
  }
  bool can_send_files() const override { return true; }

  void EndWrites() override { ::shutdown(fd_, SHUT_WR); }
  bool is_tls() const override { return false; }

 private:
  int fd_;
};

}  // namespace

std::unique_ptr<Transport> MakePlainTransport(int fd) {
  return std::make_unique<PlainTransport>(fd);
}

}  // namespace athanor
