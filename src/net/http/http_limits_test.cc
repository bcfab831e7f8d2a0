#include <sys/resource.h>

#include <gtest/gtest.h>

#include "net/http/http_server.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using testing::BodyOf;
using testing::RawClient;
using testing::ResidentBytes;
using testing::TestServer;

void Echo(Request request, Responder responder) {
  responder.Send(Response::Text(200, request.body));
}

std::string Ask(uint16_t port, const std::string& request) {
  auto client = RawClient::Tcp(port);
  client.Send(request);
  return client.ReadAll();
}

void AllowDescriptors(rlim_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min(count, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(HttpLimits, RefusesMalformedRequestsAsJsonWithoutSniffing) {
  TestServer server([](Request, Responder) { ADD_FAILURE() << "a malformed request got through"; });
  const std::string cases[] = {
      "nonsense\r\n\r\n",
      "GET / HTTP/3.0\r\nHost: x\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",                        // no Host
      "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",  // two
      "GET / HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nBad\x01: y\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"s,
      "GET x HTTP/1.1\r\nHost: x\r\n\r\n",
      "CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\na",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
      "4\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
  };
  for (const auto& request : cases) {
    const auto reply = Ask(server.port(), request);
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 400 ")) << request << "\n-> " << reply;
    EXPECT_NE(reply.find("Content-Type: application/json\r\n"), std::string::npos) << request;
    EXPECT_NE(reply.find("X-Content-Type-Options: nosniff\r\n"), std::string::npos) << request;
    EXPECT_NE(reply.find("Connection: close\r\n"), std::string::npos) << request;
    EXPECT_NE(reply.find("{\"error\":{\"code\":\"invalid\""), std::string::npos) << request;
  }
  const auto reply =
      Ask(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 501 ")) << reply;
}

TEST(HttpLimits, Answers431WhenTheHeadersAreTooLarge) {
  TestServer server(Echo);
  const std::string fits =
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: " + std::string(60 << 10, 'a') +
      "\r\n\r\n";
  EXPECT_TRUE(Ask(server.port(), fits).starts_with("HTTP/1.1 200 "));
  const std::string one = "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(65 << 10, 'a');
  EXPECT_TRUE(Ask(server.port(), one).starts_with("HTTP/1.1 431 "));
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 7000; ++i) many += "A: bbbbbbbbbb\r\n";
  EXPECT_TRUE(Ask(server.port(), many + "\r\n").starts_with("HTTP/1.1 431 "));
  const std::string line = "GET /" + std::string(70 << 10, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_TRUE(Ask(server.port(), line).starts_with("HTTP/1.1 431 "));
}

TEST(HttpLimits, Answers413ForBodiesBeyondThePolicyHoweverTheyAreSent) {
  TestServer server(Echo, {}, [](const Request&) {
    BodyPolicy policy;
    policy.max_bytes = 1000;
    return policy;
  });
  const std::string large(1001, 'b');
  EXPECT_TRUE(Ask(server.port(),
                  "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  "Content-Length: 1000\r\n\r\n" +
                      std::string(1000, 'b'))
                  .starts_with("HTTP/1.1 200 "));
  const auto declared =
      Ask(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + large);
  EXPECT_TRUE(declared.starts_with("HTTP/1.1 413 ")) << declared;
  EXPECT_NE(declared.find("1000 bytes"), std::string::npos);
  const auto chunked =
      Ask(server.port(),
          "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + large);
  EXPECT_TRUE(chunked.starts_with("HTTP/1.1 413 ")) << chunked;
  // With Expect the body is never sent: the refusal comes instead of "100".
  const auto expected =
      Ask(server.port(),
          "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(expected.starts_with("HTTP/1.1 413 ")) << expected;
}

TEST(HttpLimits, TheRefusalReachesAClientThatIsStillSending) {
  TestServer server(Echo);
  for (int i = 0; i < 10; ++i) {
    auto client = RawClient::Tcp(server.port());
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n");
    client.Send(std::string(4'000'000, 'x'));
    EXPECT_TRUE(client.ReadAll().starts_with("HTTP/1.1 413 "));
  }
}

TEST(HttpLimits, APolicyCanRefuseBeforeTheBodyIsRead) {
  TestServer server([](Request, Responder) { ADD_FAILURE(); }, {},
                    [](const Request&) {
                      BodyPolicy policy;
                      policy.refuse = Response::Text(403, "no");
                      return policy;
                    });
  EXPECT_EQ(BodyOf(Ask(server.port(), "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")),
            "no");
}

TEST(HttpLimits, Answers507WhenTheBodyCannotBeStored) {
  TestServer server(Echo, {}, [](const Request&) {
    BodyPolicy policy;
    policy.spool.reset(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    return policy;
  });
  const auto reply =
      Ask(server.port(), "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 507 ")) << reply;
}

TEST(HttpLimits, RefusesAnEndlessChunkHeader) {
  TestServer server(Echo);
  const auto reply =
      Ask(server.port(), "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                             std::string(200 << 10, 'e'));
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 400 ")) << reply.substr(0, 200);
}

TEST(HttpLimits, ClosesIdleConnectionsQuietly) {
  HttpServerOptions options;
  options.idle_timeout = milliseconds(40);
  TestServer server(Echo, options);
  EXPECT_EQ(Ask(server.port(), ""), "");
  const auto reply = Ask(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 "));
}

TEST(HttpLimits, Answers408ToRequestsThatDribble) {
  HttpServerOptions options;
  options.head_timeout = milliseconds(40);
  options.body_timeout = milliseconds(40);
  TestServer server(Echo, options);
  EXPECT_TRUE(Ask(server.port(), "GET / HTTP/1.1\r\nHos").starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(Ask(server.port(), "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
                  .starts_with("HTTP/1.1 408 "));
}

TEST(HttpLimits, CutsOffAClientThatTakesNoBytes) {
  HttpServerOptions options;
  options.write_timeout = milliseconds(60);
  const std::string large(32 << 20, 'x');
  TestServer server(
      [&large](Request, Responder responder) { responder.Send(Response::Text(200, large)); },
      options);
  auto client = RawClient::Tcp(server.port(), "127.0.0.1", 4096);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ReadBytes(1);
  server.Until([&] { return server.server().connections() == 0; });
}

TEST(HttpLimits, MakesRoomByClosingAnIdleConnectionAndElseSays503) {
  HttpServerOptions options;
  options.max_connections = 2;
  options.unix_places = 0;
  std::vector<Responder> waiting;
  TestServer server(
      [&waiting](Request request, Responder responder) {
        if (request.raw_path == "/wait") return waiting.push_back(responder);
        responder.Send(Response::Text(200, "ok"));
      },
      options);
  auto idle = RawClient::Tcp(server.port());
  auto busy = RawClient::Tcp(server.port());
  busy.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  server.Until([&] { return waiting.size() == 1; });
  auto third = RawClient::Tcp(server.port());
  third.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.ReadAll(), "");
  server.Until([&] { return waiting.size() == 2; });
  auto fourth = RawClient::Tcp(server.port());
  EXPECT_TRUE(fourth.ReadAll().starts_with("HTTP/1.1 503 "));
  server.OnLoop([&] {
    for (auto& responder : waiting) responder.Send(Response::Text(200, "at last"));
    waiting.clear();
  });
  EXPECT_EQ(BodyOf(busy.ReadResponse()), "at last");
  EXPECT_EQ(BodyOf(third.ReadResponse()), "at last");
}

// One of the places is for Unix sockets only, two of four for any one user.
class Places : public ::testing::Test {
 protected:
  static HttpServerOptions Options() {
    HttpServerOptions options;
    options.max_connections = 4;
    options.unix_places = 1;
    options.max_per_peer = 2;
    return options;
  }
  void SetUp() override {
    ASSERT_TRUE(server_.OnLoop([&] { return server_.server().ListenUnix(path_).ok(); }));
  }
  void UntilThere(size_t count) {
    server_.Until([&] { return server_.server().connections() == count; });
  }

  testing::TempDir dir_;
  const std::string path_ = dir_ / "s";
  TestServer server_{Echo, Options()};
};

TEST_F(Places, OfOnePeerAreLimitedAndItsHeadlessConnectionsGoFirst) {
  auto kept = RawClient::Tcp(server_.port());
  kept.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  kept.ReadResponse();  // now between two requests
  auto headless = RawClient::Tcp(server_.port());
  headless.Send("GET / HTT");
  UntilThere(2);
  auto third = RawClient::Tcp(server_.port());
  EXPECT_EQ(headless.ReadAll(), "");
  third.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(third.ReadResponse().starts_with("HTTP/1.1 200 "));
  kept.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(kept.ReadResponse().starts_with("HTTP/1.1 200 "));
}

TEST_F(Places, AreKeptForUnixSockets) {
  std::vector<RawClient> unix_clients;
  std::vector<RawClient> tcp_clients;
  for (int i = 0; i < 2; ++i) tcp_clients.push_back(RawClient::Tcp(server_.port()));
  for (int i = 0; i < 2; ++i) unix_clients.push_back(RawClient::Unix(path_));
  UntilThere(4);
  // All places are taken: TCP makes room, not the Unix sockets.
  unix_clients.push_back(RawClient::Unix(path_));
  EXPECT_EQ(tcp_clients[0].ReadAll(), "");
  for (auto& client : unix_clients) {
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(client.ReadResponse().starts_with("HTTP/1.1 200 "));
  }
}

TEST(HttpLimits, AThousandIdleConnectionsFitInTenMegabytes) {
  AllowDescriptors(4096);
  TestServer server(Echo);
  std::vector<RawClient> clients;
  clients.reserve(1000);
  const size_t before = ResidentBytes();
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(RawClient::Tcp(server.port()));
    clients.back().Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    ASSERT_EQ(BodyOf(clients.back().ReadResponse()), "abc");
  }
  EXPECT_EQ(server.OnLoop([&] { return server.server().connections(); }), 1000U);
  const size_t after = ResidentBytes();
  RecordProperty("bytes_per_connection", static_cast<int>((after - before) / 1000));
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer keeps what was freed";
  EXPECT_LT(after, before + (10 << 20));
}

}  // namespace
}  // namespace athanor
