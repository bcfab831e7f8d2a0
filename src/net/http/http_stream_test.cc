#include <sys/resource.h>

#include <atomic>
#include <map>

#include <gtest/gtest.h>

#include "net/http/http_server.h"
#include "net/http/sse.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using testing::BodyOf;
using testing::RawClient;
using testing::TestServer;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

// Streams of all clients, for the test to write to; touched on the loop's thread.
struct Streams {
  std::vector<Stream> open;
  int closed = 0;
  HttpServer::Handler Handler() {
    return [this](Request, Responder responder) {
      Stream stream =
          responder.BeginStream(Response{200, {{"Content-Type", "text/event-stream"}}, ""});
      stream.OnClosed([this] { ++closed; });
      open.push_back(stream);
    };
  }
};

TEST(HttpStream, ArrivesPieceByPieceAndLeavesTheConnectionUsable) {
  Streams streams;
  TestServer server(streams.Handler());
  auto client = RawClient::Tcp(server.port());
  for (int round = 0; round < 2; ++round) {
    client.Send(kGet);
    EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Transfer-Encoding: chunked"), std::string::npos);
    server.OnLoop([&] { EXPECT_TRUE(streams.open.back().Write("one")); });
    EXPECT_EQ(client.ReadUntil("one\r\n"), "3\r\none\r\n");
    server.OnLoop([&] {
      streams.open.back().Write("");
      streams.open.back().Write("two");
      streams.open.back().Close();
      EXPECT_FALSE(streams.open.back().Write("too late"));
    });
    EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "3\r\ntwo\r\n0\r\n\r\n");
    server.Until([&] { return streams.closed == round + 1; });
  }
}

TEST(HttpStream, IsClosedWhenTheLastCopyIsDropped) {
  TestServer server([](Request, Responder responder) {
    Stream stream = responder.BeginStream({});
    const Stream copy = stream;
    stream.Write("only");
  });
  auto client = RawClient::Tcp(server.port());
  client.Send(kGet);
  client.ReadUntil("\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "4\r\nonly\r\n0\r\n\r\n");
}

TEST(HttpStream, ToHttp10HasNoChunksAndEndsWithTheConnection) {
  TestServer server([](Request, Responder responder) { responder.BeginStream({}).Write("plain"); });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadAll()), "plain");
}

TEST(HttpStream, ToHeadIsOnlyAHead) {
  bool open = true;
  TestServer server([&open](Request, Responder responder) {
    Stream stream = responder.BeginStream({});
    open = stream.open();
    stream.Write("never");
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadAll()), "");
  EXPECT_FALSE(open);
}

TEST(HttpStream, NoticesThatTheClientHungUp) {
  Streams streams;
  TestServer server(streams.Handler());
  auto client = RawClient::Tcp(server.port());
  client.Send(kGet);
  client.ReadUntil("\r\n\r\n");
  client.Close();
  server.Until([&] { return streams.closed == 1; });
  EXPECT_FALSE(server.OnLoop([&] { return streams.open[0].open(); }));
  EXPECT_FALSE(server.OnLoop([&] { return streams.open[0].Write("x"); }));
}

TEST(HttpStream, ShowsTheBacklogOfASlowReaderSoThatItCanBeCutOff) {
  Streams streams;
  TestServer server(streams.Handler());
  auto slow = RawClient::Tcp(server.port(), "127.0.0.1", 4096);
  auto quick = RawClient::Tcp(server.port());
  slow.Send(kGet);
  server.Until([&] { return streams.open.size() == 1; });
  quick.Send(kGet);
  server.Until([&] { return streams.open.size() == 2; });
  const std::string piece(64 << 10, 'p');
  server.OnLoop([&] {
    for (int i = 0; i < 200; ++i) streams.open[0].Write(piece);
    EXPECT_GE(streams.open[0].backlog(), 200 * piece.size());
    EXPECT_EQ(streams.open[1].backlog() > 1000, false);
  });
  // The other reader is not held up.
  server.OnLoop([&] { streams.open[1].Write("quick"); });
  quick.ReadUntil("quick");
  EXPECT_GT(server.OnLoop([&] { return streams.open[0].backlog(); }), 1U << 20);
  server.OnLoop([&] { streams.open[0].Abort(); });
  server.Until([&] { return streams.closed == 1; });
  EXPECT_EQ(server.OnLoop([&] { return streams.open[0].backlog(); }), 0U);
  EXPECT_EQ(server.OnLoop([&] { return server.server().connections(); }), 1U);
}

TEST(HttpStream, ProducesAsFastAsTheReaderTakesByWaitingForDrained) {
  struct Producer {
    Stream stream;
    int left = 100;
    size_t most = 0;
    void Next() {
      if (left-- == 0) return stream.Close();
      stream.Write(std::string(32 << 10, 'd'));
      most = std::max(most, stream.backlog());
      stream.OnDrained([this] { Next(); });
    }
  } producer;
  TestServer server([&producer](Request, Responder responder) {
    producer.stream = responder.BeginStream({});
    producer.Next();
  });
  auto client = RawClient::Tcp(server.port(), "127.0.0.1", 32 << 10);
  client.Send(kGet);
  client.ReadUntil("\r\n\r\n");
  const std::string all = client.ReadUntil("\r\n0\r\n\r\n");
  EXPECT_EQ(std::count(all.begin(), all.end(), 'd'), 100 << 15);
  EXPECT_LT(producer.most, 70U << 10);
}

TEST(HttpStream, AnswerThatIsReadSlowlyArrivesWhole) {
  std::string body;
  for (int i = 0; i < 300'000; ++i) body += std::to_string(i) + ",";
  TestServer server([&body](Request, Responder responder) {
    Stream stream = responder.BeginStream({});
    for (size_t at = 0; at < body.size(); at += 10'000) stream.Write(body.substr(at, 10'000));
  });
  auto client = RawClient::Tcp(server.port(), "127.0.0.1", 32 << 10);
  client.Send(kGet);
  client.ReadUntil("\r\n\r\n");
  std::string got;
  for (;;) {
    const size_t size = std::stoul(client.ReadUntil("\r\n"), nullptr, 16);
    if (size == 0) break;
    got += client.ReadBytes(size);
    ASSERT_EQ(client.ReadBytes(2), "\r\n");
  }
  EXPECT_TRUE(got == body);
}

TEST(HttpStream, FiveHundredClientsGetEveryEventInOrder) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(4096, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Streams streams;
  TestServer server(streams.Handler());
  std::vector<RawClient> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(RawClient::Tcp(server.port()));
    clients.back().Send(kGet);
  }
  server.Until([&] { return streams.open.size() == 500; });
  for (int event = 0; event < 20; ++event) {
    server.OnLoop([&] {
      for (auto& stream : streams.open) {
        stream.Write(FormatSse({std::to_string(event), "tick", "n" + std::to_string(event)}));
      }
    });
  }
  server.OnLoop([&] {
    for (auto& stream : streams.open) stream.Close();
  });
  for (auto& client : clients) {
    const std::string all = client.ReadUntil("0\r\n\r\n");
    size_t at = 0;
    for (int event = 0; event < 20; ++event) {
      at = all.find("data: n" + std::to_string(event) + "\n", at);
      ASSERT_NE(at, std::string::npos) << event;
    }
  }
  server.Until([&] { return streams.closed == 500; });
}

}  // namespace
}  // namespace athanor
