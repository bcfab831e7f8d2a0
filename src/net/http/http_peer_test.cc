#include <sys/wait.h>

#include <gtest/gtest.h>

#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "net/peer.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using testing::BodyOf;
using testing::RawClient;
using testing::TempDir;
using testing::TestServer;

void TellPeer(Request request, Responder responder) {
  const Peer& peer = request.peer;
  responder.Send(Response::Text(200, std::string(peer.unix_socket ? "unix "
                                                 : peer.loopback  ? "loopback "
                                                                  : "far ") +
                                         (peer.uid ? std::to_string(*peer.uid) : "nobody") + " " +
                                         (peer.pid ? std::to_string(*peer.pid) : "-") + " " +
                                         peer.address));
}

std::string AskWho(RawClient client) {
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return BodyOf(client.ReadResponse());
}

const std::string kMe = std::to_string(::geteuid());

TEST(Peer, KnowsUserAndProcessBehindAUnixSocket) {
  TempDir dir;
  TestServer server(TellPeer);
  const std::string path = dir / "s";
  ASSERT_TRUE(server.OnLoop([&] { return server.server().ListenUnix(path).ok(); }));
  EXPECT_EQ(AskWho(RawClient::Unix(path)),
            "unix " + kMe + " " + std::to_string(::getpid()) + " unix");
}

TEST(Peer, KnowsTheUserBehindALoopbackV4Connection) {
  TestServer server(TellPeer);
  const auto who = AskWho(RawClient::Tcp(server.port()));
  EXPECT_TRUE(who.starts_with("loopback " + kMe + " - 127.0.0.1:")) << who;
}

TEST(Peer, KnowsTheUserBehindLoopbackV6AndMappedV4Connections) {
  TestServer server(TellPeer);
  const auto port = server.OnLoop([&] { return server.server().ListenTcp("::", 0); });
  if (!port) GTEST_SKIP() << "no IPv6 here: " << port.error().what;
  const auto mapped = AskWho(RawClient::Tcp(*port, "127.0.0.1"));
  EXPECT_TRUE(mapped.starts_with("loopback " + kMe + " - 127.0.0.1:")) << mapped;
  const auto both_mapped = AskWho(RawClient::Tcp(*port, "::ffff:127.0.0.1"));
  EXPECT_TRUE(both_mapped.starts_with("loopback " + kMe + " - 127.0.0.1:")) << both_mapped;
  const auto v6 = AskWho(RawClient::Tcp(*port, "::1"));
  EXPECT_TRUE(v6.starts_with("loopback " + kMe + " - [::1]:")) << v6;
}

TEST(Peer, TellsAnotherUserFromThisOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  TestServer server(TellPeer);
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    HttpClient client(Endpoint{"", "127.0.0.1", server.port()});
    const auto reply = client.Get("/");
    if (!reply || !WriteAll(pipe_fds[1], reply->body).ok()) ::_exit(2);
    ::_exit(0);
  }
  ::close(pipe_fds[1]);
  const UniqueFd reader(pipe_fds[0]);
  const auto who = ReadAll(reader.get()).value();
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(who.starts_with("loopback 65534 - ")) << who;
}

// The kernel reports uid 0 for a socket that no process holds; that must not
// look like root.
TEST(Peer, HasNoUserOnceTheClientHasClosedItsEnd) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &size), 0);
  auto client = RawClient::Tcp(ntohs(address.sin_port));
  const UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  PeerLookup lookup;
  EXPECT_EQ(lookup.Of(accepted.get()).uid, ::geteuid());
  client.Close();
  char byte;
  ASSERT_EQ(::recv(accepted.get(), &byte, 1, 0), 0);
  const Peer gone = lookup.Of(accepted.get());
  EXPECT_TRUE(gone.loopback);
  EXPECT_FALSE(gone.uid.has_value());
}

void TellVerdict(Request request, Responder responder) {
  const auto verdict = request.peer.acts_for_uid;
  responder.Send(Response::Text(200, !verdict ? "not asked" : *verdict ? "its user" : "somebody"));
}

TEST(Peer, NobodySeesARequestBeforeItsPeerIsJudgedAndThatOnce) {
  TestServer server(TellVerdict);
  int asked = 0;
  std::function<void(bool)> verdict;
  int policies = 0;
  server.OnLoop([&] {
    server.server().SetPeerJudge([&](const Request& head, std::function<void(bool)> done) {
      if (head.headers.Has("Authorization")) return false;
      ++asked;
      EXPECT_TRUE(head.peer.inode.has_value());
      verdict = std::move(done);
      return true;
    });
    server.server().SetBodyPolicy([&](const Request& head) {
      policies += head.peer.acts_for_uid.has_value() ? 1 : 0;
      return BodyPolicy{};
    });
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer y\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "not asked");
  client.Send(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\nHost: x\r\n\r\n");
  server.Until([&] { return asked == 1 && verdict; });
  EXPECT_EQ(server.OnLoop([&] { return policies; }), 0);
  server.OnLoop([&] { verdict(false); });
  EXPECT_EQ(BodyOf(client.ReadResponse()), "somebody");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "somebody");
  EXPECT_EQ(server.OnLoop([&] { return std::pair(asked, policies); }), std::pair(1, 2));
}

TEST(Peer, AVerdictMayComeAtOnceOrAfterTheClientLeft) {
  TestServer server(TellVerdict);
  std::function<void(bool)> late;
  server.OnLoop([&] {
    server.server().SetPeerJudge([&](const Request& head, std::function<void(bool)> done) {
      if (head.path == "/late") {
        late = std::move(done);
      } else {
        done(true);
      }
      return true;
    });
  });
  {
    auto gone = RawClient::Tcp(server.port());
    gone.Send("GET /late HTTP/1.1\r\nHost: x\r\n\r\n");
    server.Until([&] { return late != nullptr; });
  }
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "its user");
  server.OnLoop([&] { late(true); });
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "its user");
}

}  // namespace
}  // namespace athanor
