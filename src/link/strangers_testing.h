// For tests: a server known by its key, which can be replaced by another one at the same port.
#pragma once

#include <gtest/gtest.h>

#include <fcntl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "net/certificate.h"
#include "net/test_server.h"

namespace athanor {

// At `address` with TLS; answers with `handler`, and counts what it hears.
class KeyedServer {
 public:
  explicit KeyedServer(HttpServer::Handler handler =
                           [](Request, const Responder& responder) {
                             responder.Send(Response::Text(200, ""));
                           })
      : handler_(std::move(handler)) {
    EXPECT_TRUE(MakeDirs(dir_ / "right"));
    EXPECT_TRUE(MakeDirs(dir_ / "other"));
    right_ = OpenOwnCertificate(dir_ / "right").value();
    other_ = OpenOwnCertificate(dir_ / "other").value();
  }

  void Up() { Start(right_); }
  // Another server at its address.
  void UpAsStranger() { Start(other_); }
  void Down() { server_.reset(); }

  const std::string& pin() const { return right_.pin; }
  const std::string& other_pin() const { return other_.pin; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int heard() const { return heard_; }

 private:
  void Start(const OwnCertificate& own) {
    server_.reset();
    server_ = std::make_unique<testing::TestServer>(
        [this](Request request, Responder responder) {
          ++heard_;
          handler_(std::move(request), std::move(responder));
        },
        HttpServerOptions{},
        [](const Request&) {
          BodyPolicy policy;
          policy.max_bytes = 1 << 30;
          return policy;
        });
    server_->OnLoop([&] {
      port_ = server_->server().ListenTls("127.0.0.1", port_, own.cert_file, own.key_file).value();
    });
  }

  TestDir dir_;
  HttpServer::Handler handler_;
  OwnCertificate right_;
  OwnCertificate other_;
  uint16_t port_ = 0;
  std::atomic<int> heard_ = 0;
  std::unique_ptr<testing::TestServer> server_;
};

// What a Logger writes, to be read.
class LogFile {
 public:
  LogFile()
      : fd_(::open((dir_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  int fd() const { return fd_.get(); }
  std::string text() const { return ReadFile(dir_ / "log").value_or(""); }
  size_t Count(const std::string& words) const {
    const auto all = text();
    size_t count = 0;
    for (size_t at = all.find(words); at != std::string::npos; at = all.find(words, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  TestDir dir_;
  UniqueFd fd_;
};

}  // namespace athanor
