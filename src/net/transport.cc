#include "net/transport.h"

#include <sys/socket.h>

#include <cerrno>

namespace athanor {
namespace {

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int fd) : fd_(fd) {}

  Outcome Read(char* buffer, size_t size) override {
    for (;;) {
      const ssize_t got = ::recv(fd_, buffer, size, MSG_DONTWAIT);
      if (got > 0) return {Io::kDone, static_cast<size_t>(got)};
      if (got == 0) return {Io::kEof, 0};
      if (errno == EINTR) continue;
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Io::kWantRead : Io::kError, 0};
    }
  }

  Outcome Write(std::string_view bytes) override {
    for (;;) {
      const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put > 0) return {Io::kDone, static_cast<size_t>(put)};
      if (put < 0 && errno == EINTR) continue;
      return {errno == EAGAIN || errno == EWOULDBLOCK ? Io::kWantWrite : Io::kError, 0};
    }
  }

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
