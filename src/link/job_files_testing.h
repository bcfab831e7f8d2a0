// For tests only: a job's folders, a server for them, and a line to it that keeps breaking.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/exec/thread_pool.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "link/job_files_service.h"
#include "link/remote_job_files.h"
#include "net/certificate.h"
#include "net/test_server.h"

namespace athanor {

// What a server has on its disk of one job, which continues from another one.
struct JobFolders {
  explicit JobFolders(std::string path = {}) : root(path.empty() ? dir.path() : std::move(path)) {
    EXPECT_TRUE(MakeDirs(options().job_dir));
    EXPECT_TRUE(MakeDirs(options().earlier_dir));
  }
  LocalJobFiles::Options options(uint32_t attempt = 1) const {
    return {root + "/blobs", root + "/jobs/mine", root + "/jobs/earlier", "", attempt};
  }

  TestDir dir;
  std::string root;
};

// The routes of JobFilesService over a real HTTP server, plain and with TLS.
class FilesServer {
 public:
  explicit FilesServer(LocalJobFiles::Options files)
      : own_(OpenOwnCertificate(dir_.path()).value()) {
    grant_.files = std::move(files);
    grant_.job = "mine";
    for (const auto& row : JobFilesService::Rows()) {
      EXPECT_TRUE(router_.Add(
          {row.method, row.pattern, row.name,
           [this, name = row.name](Request request, Captures captures, Responder responder) {
             service_->Handle(name, std::move(request), std::move(captures), grant_,
                              std::move(responder));
           }}));
    }
    Start(0);
  }

  // Changes what callers may do; the next call sees it.
  template <class Change>
  void ChangeGrant(Change change) {
    server_->OnLoop([&] { change(grant_); });
  }

  ~FilesServer() { Stop(); }

  void Stop() {
    if (workers_) workers_->Stop();  // who answers ends before the loop does
    server_.reset();
  }
  void Start(uint16_t port) {
    workers_ = std::make_unique<ThreadPool>(4);
    service_ = std::make_unique<JobFilesService>(*workers_);
    server_ = std::make_unique<testing::TestServer>(
        [this](Request request, const Responder& responder) {
          ++requests_;
          if (request.headers.Get("Authorization") != "Bearer token") {
            return responder.Send(ErrorResponse(Error{ErrorCode::kDenied, "who are you?"}));
          }
          if (over_) return responder.Send(ErrorResponse(410, Error{ErrorCode::kConflict, "over"}));
          if (busy_ > 0 || requests_ > good_) {
            if (busy_ > 0) --busy_;
            return responder.Send(Response::Text(busy_status_, "busy"));
          }
          router_.Dispatch(std::move(request), responder);
        },
        HttpServerOptions{},
        [this](const Request& head) {
          const auto match = router_.Find(head.method, head.raw_path);
          if (!match.route) return BodyPolicy{};
          return service_->PolicyFor(match.route->name, match.captures, head, grant_);
        });
    server_->OnLoop([&] {
      tls_port_ =
          server_->server().ListenTls("127.0.0.1", port, own_.cert_file, own_.key_file).value();
    });
  }

  RemoteJobFiles::Options Plain() const { return At("http://127.0.0.1", server_->port()); }
  RemoteJobFiles::Options Tls() const { return At("https://127.0.0.1", tls_port_); }
  RemoteJobFiles::Options At(const std::string& host, uint16_t port) const {
    RemoteJobFiles::Options options;
    options.server = host + ":" + std::to_string(port);
    options.pin = own_.pin;
    options.token = "token";
    options.scratch_dir = dir_.path();
    options.pause = [](Millis) {
      std::this_thread::yield();
      return true;
    };
    return options;
  }
  uint16_t tls_port() const { return tls_port_; }
  int requests() const { return requests_; }
  void AnswerBusy(int times, int status = 503) {
    busy_status_ = status;
    busy_ = times;
  }
  // After so many more requests, all others.
  void AnswerBusyAfter(int more) { good_ = requests_ + more; }
  void EndAttempt() { over_ = true; }

 private:
  TestDir dir_;
  OwnCertificate own_;
  std::unique_ptr<ThreadPool> workers_;
  std::unique_ptr<JobFilesService> service_;
  Router router_;
  JobFilesGrant grant_;
  uint16_t tls_port_ = 0;
  std::atomic<int> requests_ = 0;
  std::atomic<int> busy_ = 0;
  std::atomic<int> busy_status_ = 503;
  std::atomic<int> good_ = INT_MAX;
  std::atomic<bool> over_ = false;
  std::unique_ptr<testing::TestServer> server_;
};

// Passes bytes on to `port`, and breaks each connection after a while; a bit later each time, so
// that every answer gets through at last.
class BreakingLine {
 public:
  BreakingLine(uint16_t port, size_t first, size_t more)
      : to_(port),
        left_(first),
        more_(more),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
    port_ = ntohs(any.sin_port);
    accepter_ = std::thread([this] { Accept(); });
  }
  ~BreakingLine() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepter_.join();
    for (auto& thread : threads_) thread.join();
  }
  uint16_t port() const { return port_; }
  uint64_t passed() const { return passed_; }

 private:
  void Accept() {
    for (;;) {
      UniqueFd caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller) return;
      UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(to_);
      if (::connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        continue;
      const size_t budget = left_;
      left_ += more_;
      threads_.emplace_back([this, budget, a = std::move(caller), b = std::move(server)] {
        Pass(a.get(), b.get(), budget);
      });
    }
  }

  void Pass(int a, int b, size_t budget) {
    char piece[16 << 10];
    for (;;) {
      pollfd polled[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
      if (::poll(polled, 2, -1) <= 0) return;
      for (int i = 0; i < 2; ++i) {
        if (polled[i].revents == 0) continue;
        const ssize_t got = ::recv(i == 0 ? a : b, piece, std::min(sizeof piece, budget), 0);
        if (got <= 0) return;
        const auto size = static_cast<size_t>(got);
        passed_ += size;
        budget -= size;
        for (size_t sent = 0; sent < size;) {
          const ssize_t put = ::send(i == 0 ? b : a, piece + sent, size - sent, MSG_NOSIGNAL);
          if (put <= 0) return;
          sent += static_cast<size_t>(put);
        }
        if (budget == 0) return;
      }
    }
  }

  uint16_t to_;
  size_t left_;  // of the next connection; the accepting thread's
  size_t more_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<uint64_t> passed_ = 0;
  std::vector<std::thread> threads_;
  std::thread accepter_;
};

// The same bytes for the same seed; they do not repeat.
inline std::string SomeBytes(size_t size, uint32_t seed = 1) {
  std::string bytes(size, '\0');
  uint64_t state = 0x9e3779b97f4a7c15ull * (seed + 1);
  for (size_t i = 0; i < size; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    for (size_t j = i; j < std::min(size, i + 8); ++j) {
      bytes[j] = static_cast<char>(state >> (8 * (j - i)));
    }
  }
  return bytes;
}

inline UniqueFd FileOf(const TestDir& dir, std::string_view bytes) {
  const std::string path = dir.path() + "/file-" + NewUlid().ToString();
  EXPECT_TRUE(ReplaceFile(path, bytes));
  return UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

}  // namespace athanor
