#include "net/certificate.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "net/http/http_client.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using testing::TempDir;
using testing::TestServer;

std::string Folder(const TempDir& dir, const char* name) {
  const std::string path = dir / name;
  EXPECT_TRUE(MakeDirs(path));
  return path;
}

TEST(OwnCertificate, IsMadeOnceAndKept) {
  const TempDir dir;
  const auto first = OpenOwnCertificate(Folder(dir, "a"));
  ASSERT_TRUE(first) << first.error().what;
  EXPECT_EQ(first->pin.size(), 64u);
  EXPECT_EQ(PinOfFile(first->cert_file).value(), first->pin);
  struct stat info {};
  ASSERT_EQ(::stat(first->key_file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(OpenOwnCertificate(dir / "a")->pin, first->pin);
  EXPECT_NE(OpenOwnCertificate(Folder(dir, "b"))->pin, first->pin);
}

TEST(OwnCertificate, WithoutItsFileOrDamagedIsMadeAgainFromTheKeyAndKeepsItsPin) {
  const TempDir dir;
  const auto own = OpenOwnCertificate(Folder(dir, "a")).value();
  const auto other = OpenOwnCertificate(Folder(dir, "b")).value();
  ASSERT_TRUE(RemoveTree(own.cert_file));
  EXPECT_EQ(OpenOwnCertificate(dir / "a")->pin, own.pin);
  for (const auto& text : {std::string("no certificate"), ReadFile(other.cert_file).value()}) {
    ASSERT_TRUE(ReplaceFile(own.cert_file, text));
    EXPECT_EQ(OpenOwnCertificate(dir / "a")->pin, own.pin);
    EXPECT_EQ(PinOfFile(own.cert_file).value(), own.pin);
  }
}

TEST(OwnCertificate, ADamagedKeyIsToldAndNotReplaced) {
  const TempDir dir;
  const auto own = OpenOwnCertificate(Folder(dir, "a")).value();
  ASSERT_TRUE(ReplaceFile(own.key_file, "damaged"));
  const auto opened = OpenOwnCertificate(dir / "a");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(opened.error().hint.find("backup"), std::string::npos);
  EXPECT_EQ(ReadFile(own.key_file).value(), "damaged");
}

struct PinnedServer {
  explicit PinnedServer(const OwnCertificate& own)
      : server([this](const Request&, const Responder& responder) {
          ++requests;
          responder.Send(Response::Text(200, "here"));
        }) {
    port = server.OnLoop([&] {
      return server.server().ListenTls("127.0.0.1", 0, own.cert_file, own.key_file).value();
    });
  }
  Result<HttpReply> Get(const std::string& pin, const char* host = "127.0.0.1") {
    HttpClientOptions options;
    options.pin = pin;
    HttpClient client(Endpoint{"", host, port, true}, options);
    return client.Get("/");
  }
  std::atomic<int> requests = 0;
  uint16_t port = 0;
  TestServer server;
};

TEST(Pin, IsAllThatAClientChecksOfItsServer) {
  const TempDir dir;
  const auto own = OpenOwnCertificate(Folder(dir, "a")).value();
  PinnedServer server(own);
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto reply = server.Get(own.pin, host);
    ASSERT_TRUE(reply) << reply.error().what << reply.error().why;
    EXPECT_EQ(reply->body, "here");
  }
}

TEST(Pin, AServerWithAnotherKeyIsRefusedBeforeAnythingIsSent) {
  const TempDir dir;
  const auto own = OpenOwnCertificate(Folder(dir, "a")).value();
  const auto other = OpenOwnCertificate(Folder(dir, "b")).value();
  PinnedServer server(other);
  const auto reply = server.Get(own.pin);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kDenied);
  EXPECT_NE(reply.error().what.find("another server"), std::string::npos) << reply.error().what;
  EXPECT_EQ(server.requests, 0);
}

TEST(Pin, WithoutOneAServerThatSignedItselfIsNotTrusted) {
  const TempDir dir;
  PinnedServer server(OpenOwnCertificate(Folder(dir, "a")).value());
  const auto reply = server.Get("");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(server.requests, 0);
}

}  // namespace
}  // namespace athanor
