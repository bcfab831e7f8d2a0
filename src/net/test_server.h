// For tests: an HttpServer on its own loop thread, and a client that sends and
// sees raw bytes.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "net/http/http_server.h"
#include "net/unix_address.h"

namespace athanor::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = "/tmp/athanor-net-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { (void)RemoveTree(path_); }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

class TestServer {
 public:
  explicit TestServer(HttpServer::Handler handler, HttpServerOptions options = {},
                      HttpServer::BodyPolicyFor policy = {})
      : server_(std::make_unique<HttpServer>(loop_, std::move(handler), options)) {
    if (policy) server_->SetBodyPolicy(std::move(policy));
    port_ = server_->ListenTcp("127.0.0.1", 0).value();
    thread_ = std::thread([this] { loop_.Run(); });
  }

  ~TestServer() {
    OnLoop([this] { server_.reset(); });
    loop_.Stop();
    thread_.join();
  }

  // Runs `task` on the loop's thread and waits for it.
  template <class Task>
  auto OnLoop(Task task) -> decltype(task()) {
    std::packaged_task<decltype(task())()> packaged(std::move(task));
    auto result = packaged.get_future();
    loop_.Post([&packaged] { packaged(); });
    return result.get();
  }

  // Returns when `done`, which is called on the loop's thread repeatedly, is true. If it never is,
  // the test's own time limit ends the wait.
  template <class Done>
  void Until(Done done) {
    while (!OnLoop(done)) std::this_thread::yield();
  }

  uint16_t port() const { return port_; }
  Loop& loop() { return loop_; }
  HttpServer& server() { return *server_; }

 private:
  Loop loop_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

class RawClient {
 public:
  static RawClient Tcp(uint16_t port, const char* address = "127.0.0.1", int receive_buffer = 0) {
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_in);
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    if (::inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
    } else {
      ::inet_pton(AF_INET6, address, &v6.sin6_addr);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      size = sizeof v6;
    }
    return RawClient(reinterpret_cast<sockaddr*>(&storage), size, receive_buffer);
  }

  static RawClient Unix(const std::string& path) {
    const auto address = UnixAddress::For(path).value();
    return RawClient(address.get(), address.size, 0);
  }

  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }

  // Everything up to and including `mark`, or up to the end of the connection.
  std::string ReadUntil(std::string_view mark) {
    for (;;) {
      const size_t found = buffer_.find(mark);
      if (found != std::string::npos) {
        std::string taken = buffer_.substr(0, found + mark.size());
        buffer_.erase(0, found + mark.size());
        return taken;
      }
      if (!More()) return std::exchange(buffer_, {});
    }
  }
  std::string ReadBytes(size_t count) {
    while (buffer_.size() < count && More()) {
    }
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, taken.size());
    return taken;
  }
  std::string ReadAll() {
    while (More()) {
    }
    return std::exchange(buffer_, {});
  }
  // One response with a Content-Length: head and body.
  std::string ReadResponse() {
    std::string head = ReadUntil("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    return head + ReadBytes(std::stoul(head.substr(at + 16)));
  }

  bool timed_out() const { return timed_out_; }
  void EndWrites() { ::shutdown(fd_.get(), SHUT_WR); }
  void Close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  RawClient(const sockaddr* address, socklen_t size, int receive_buffer) {
    fd_.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_buffer > 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    // So that a broken server fails a test instead of hanging it.
    const timeval limit{20, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd_.get(), address, size), 0) << std::strerror(errno);
  }

  bool More() {
    char piece[16 << 10];
    const ssize_t got = ::recv(fd_.get(), piece, sizeof piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      timed_out_ = true;
      ADD_FAILURE() << "the server was silent for 20 s";
    }
    if (got <= 0) return false;
    buffer_.append(piece, static_cast<size_t>(got));
    return true;
  }

  UniqueFd fd_;
  std::string buffer_;
  bool timed_out_ = false;
};

// Sanitizers keep freed memory for a while, so resident sizes mean little.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// Resident bytes of this process.
inline size_t ResidentBytes() {
  const std::string text = ReadFile("/proc/self/statm").value_or("0 0");
  return std::stoul(text.substr(text.find(' '))) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

inline std::string BodyOf(const std::string& response) {
  const size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

}  // namespace athanor::testing
