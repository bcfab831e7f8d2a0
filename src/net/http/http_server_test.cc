#include "net/http/http_server.h"

#include <sys/stat.h>

#include <mutex>

#include <gtest/gtest.h>

#include "net/test_server.h"

namespace athanor {
namespace {

using testing::BodyOf;
using testing::RawClient;
using testing::ResidentBytes;
using testing::TempDir;
using testing::TestServer;

void Echo(Request request, Responder responder) {
  responder.Send(Response::Text(200, request.method + " " + request.raw_path + " " + request.body));
}

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  TestServer server(Echo);
  auto client = RawClient::Tcp(server.port());
  for (int i = 0; i < 3; ++i) {
    client.Send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    const auto reply = client.ReadResponse();
    EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
    EXPECT_EQ(BodyOf(reply), "POST /a hi");
  }
  EXPECT_EQ(server.OnLoop([&] { return server.server().connections(); }), 1U);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrderEvenWhenTheFirstIsLate) {
  Loop* loop = nullptr;
  TestServer server([&loop](Request request, Responder responder) {
    const auto answer = [request, responder] {
      responder.Send(Response::Text(200, request.raw_path));
    };
    if (request.raw_path == "/late") {
      loop->After(std::chrono::milliseconds(30), answer);
    } else {
      answer();
    }
  });
  loop = &server.loop();
  auto client = RawClient::Tcp(server.port());
  client.Send(
      "GET /late HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "/late");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "/2");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "/3");
  EXPECT_EQ(client.ReadAll(), "");
}

TEST(HttpServer, AnAnswerIsFinishedOnAnyThreadBeforeItLeaves) {
  std::vector<std::thread> threads;
  TestServer server([&threads](Request, Responder responder) {
    responder.SetFinish([&threads](Response response, std::function<void(Response)> send) {
      threads.emplace_back([response = std::move(response), send = std::move(send)]() mutable {
        response.body += " and finished";
        send(std::move(response));
      });
    });
    responder.Send(Response::Text(200, "begun"));
    responder.Send(Response::Text(200, "a second answer"));
  });
  auto client = RawClient::Tcp(server.port());
  for (int i = 0; i < 2; ++i) {
    client.Send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(BodyOf(client.ReadResponse()), "begun and finished");
  }
  EXPECT_EQ(server.OnLoop([&] { return threads.size(); }), 2U);
  for (auto& thread : threads) thread.join();
}

TEST(HttpServer, AnswersAThousandPipelinedRequests) {
  TestServer server(Echo);
  auto client = RawClient::Tcp(server.port());
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      client.Send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n");
    }
  });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(BodyOf(client.ReadResponse()), "GET /" + std::to_string(i) + " ");
  }
  writer.join();
}

TEST(HttpServer, TakesChunkedBodiesSplitAnywhere) {
  TestServer server(Echo);
  const std::string request =
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;note=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\n";
  for (size_t cut = 1; cut < request.size(); cut += 7) {
    auto client = RawClient::Tcp(server.port());
    client.Send(request.substr(0, cut));
    client.Send(request.substr(cut));
    EXPECT_EQ(BodyOf(client.ReadResponse()), "POST /c hello world");
  }
}

TEST(HttpServer, SaysContinueBeforeTheBodyIsSent) {
  TestServer server(Echo);
  auto client = RawClient::Tcp(server.port());
  client.Send("PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("abc");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "PUT /x abc");
}

TEST(HttpServer, AnswersHeadWithTheLengthAndWithoutTheBody) {
  TestServer server(Echo);
  auto client = RawClient::Tcp(server.port());
  client.Send("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Content-Length: 10\r\n"), std::string::npos);
  EXPECT_EQ(BodyOf(client.ReadResponse()), "GET /next ");
}

TEST(HttpServer, SendsNoBodyWith204And304) {
  TestServer server([](Request, Responder responder) {
    responder.Send(Response{204, {}, "ignored"});
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto reply = client.ReadAll();
  EXPECT_EQ(BodyOf(reply), "");
  EXPECT_EQ(reply.find("Content-Length"), std::string::npos);
}

TEST(HttpServer, ClosesAfterAnHttp10RequestUnlessAskedToKeepAlive) {
  TestServer server(Echo);
  auto client = RawClient::Tcp(server.port());
  client.Send("GET /k HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(client.ReadResponse().find("Connection: keep-alive"), std::string::npos);
  client.Send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadAll()), "GET /a ");
}

TEST(HttpServer, AnswersA500WhenTheResponderIsDropped) {
  TestServer server([](Request, Responder) {});
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto reply = client.ReadResponse();
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 500 ")) << reply;
  EXPECT_NE(reply.find("Content-Type: application/json\r\n"), std::string::npos);
}

TEST(HttpServer, IgnoresASecondAnswer) {
  TestServer server([](Request, Responder responder) {
    const Responder copy = responder;
    responder.Send(Response::Text(200, "first"));
    copy.Send(Response::Text(200, "second"));
    EXPECT_TRUE(copy.answered());
    EXPECT_FALSE(copy.BeginStream({}).open());
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadAll()), "first");
}

TEST(HttpServer, TakesAnswersAndDropsFromOtherThreads) {
  std::vector<std::thread> threads;
  TestServer server([&threads](Request request, Responder responder) {
    threads.emplace_back([request = std::move(request), responder = std::move(responder)] {
      if (request.raw_path == "/drop") return;
      responder.Send(Response::Text(200, "from a thread"));
    });
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "from a thread");
  client.Send("GET /drop HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(client.ReadResponse().starts_with("HTTP/1.1 500 "));
  for (auto& thread : threads) thread.join();
}

TEST(HttpServer, LetsNoHeaderValueForgeAnotherHeader) {
  TestServer server([](Request, Responder responder) {
    Response response = Response::Text(200, "ok");
    response.headers.Add("X-Name", "a\r\nSet-Cookie: stolen");
    response.headers.Add("Bad Name:", "x");
    responder.Send(std::move(response));
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto reply = client.ReadResponse();
  EXPECT_NE(reply.find("X-Name: a  Set-Cookie: stolen\r\n"), std::string::npos) << reply;
  EXPECT_EQ(reply.find("Bad Name"), std::string::npos);
}

TEST(HttpServer, AnswersAClientThatHasEndedItsSide) {
  TestServer server(Echo);
  auto client = RawClient::Tcp(server.port());
  client.Send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  client.EndWrites();
  EXPECT_EQ(BodyOf(client.ReadResponse()), "GET /1 ");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "GET /2 ");
  EXPECT_EQ(client.ReadAll(), "");
}

TEST(HttpServer, DecodesPathAndQueryOnce) {
  TestServer server([](Request request, Responder responder) {
    responder.Send(Response::Text(200, request.path + "|" + request.raw_path + "|" +
                                           request.Query("q").value_or("none") + "|" +
                                           request.Query("e").value_or("none") + "|" +
                                           request.Query("z").value_or("none")));
  });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET http://h/a%2520b?q=1%2B1+2&e HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "/a%20b|/a%2520b|1+1 2||none");
}

TEST(HttpServer, SendsALargeBodyWhole) {
  const std::string large(20 << 20, 'x');
  TestServer server(
      [&large](Request, Responder responder) { responder.Send(Response::Text(200, large)); });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(BodyOf(client.ReadAll()) == large);
}

struct SparseFile {
  TempDir dir;
  std::string path = dir / "data";
  explicit SparseFile(off_t size) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(fd.get(), size), 0);
    EXPECT_EQ(::pwrite(fd.get(), "END", 3, size - 3), 3);
  }
  UniqueFd Open() const { return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }
};

TEST(HttpServer, StreamsALargeFileWithoutHoldingIt) {
  constexpr uint64_t kSize = 200 << 20;
  const SparseFile file(kSize);
  TestServer server(
      [&file](Request, Responder responder) { responder.SendFile({}, file.Open(), 0, kSize); });
  auto client = RawClient::Tcp(server.port());
  const size_t before = ResidentBytes();
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Content-Length: 209715200\r\n"), std::string::npos);
  size_t most = 0;
  std::string last;
  for (uint64_t got = 0; got < kSize; got += last.size()) {
    last = client.ReadBytes(std::min<uint64_t>(1 << 20, kSize - got));
    ASSERT_FALSE(last.empty());
    most = std::max(most, ResidentBytes());
  }
  EXPECT_TRUE(last.ends_with("END"));
  if (!testing::kSanitized) {
    EXPECT_LT(most, before + (16 << 20));
  }
}

TEST(HttpServer, SendsAPartOfAFileAndKeepsTheConnection) {
  const SparseFile file(1000);
  TestServer server([&file](Request, Responder responder) {
    responder.SendFile(Response{206, {}, ""}, file.Open(), 995, 5);
  });
  auto client = RawClient::Tcp(server.port());
  for (int i = 0; i < 2; ++i) {
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(BodyOf(client.ReadResponse()), std::string("\0\0END", 5));
  }
}

TEST(HttpServer, CutsTheConnectionWhenAFileIsShorterThanPromised) {
  const SparseFile file(1000);
  TestServer server(
      [&file](Request, Responder responder) { responder.SendFile({}, file.Open(), 0, 2000); });
  auto client = RawClient::Tcp(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(client.ReadAll()).size(), 1000U);
  EXPECT_FALSE(client.timed_out());
}

TEST(HttpServer, SurvivesClientsThatHangUpInTheMiddleOfAnAnswer) {
  const SparseFile file(64 << 20);
  TestServer server(
      [&file](Request, Responder responder) { responder.SendFile({}, file.Open(), 0, 64 << 20); });
  for (int i = 0; i < 20; ++i) {
    auto client = RawClient::Tcp(server.port());
    client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.ReadBytes(1000).size(), 1000U);
    client.Close();
  }
  server.Until([&] { return server.server().connections() == 0; });
}

TEST(HttpServer, WritesABodyToTheFileThatThePolicyGives) {
  TempDir dir;
  const std::string path = dir / "spool";
  TestServer server(
      [](Request request, Responder responder) {
        ::lseek(request.body_file->get(), 0, SEEK_SET);
        const auto bytes = ReadAll(request.body_file->get()).value();
        responder.Send(Response::Text(200, std::to_string(request.body_size) + " " +
                                               std::to_string(request.body.size()) + " " +
                                               std::to_string(bytes.size()) + bytes.substr(0, 3)));
      },
      {},
      [&path](const Request& head) {
        BodyPolicy policy;
        EXPECT_EQ(head.method, "PUT");
        policy.max_bytes = 1 << 30;
        policy.spool.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        return policy;
      });
  auto client = RawClient::Tcp(server.port());
  const std::string body = "abc" + std::string(5'000'000, 'z');
  client.Send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  EXPECT_EQ(BodyOf(client.ReadResponse()), "5000003 0 5000003abc");
}

TEST(HttpServer, ListensOnAUnixSocketOfItsUserOnlyEvenWithALongPath) {
  TempDir dir;
  const std::string folder = dir / std::string(150, 'd');
  ASSERT_TRUE(MakeDirs(folder).ok());
  const std::string path = folder + "/s";
  {
    TestServer server(Echo);
    ASSERT_TRUE(server.OnLoop([&] { return server.server().ListenUnix(path).ok(); }));
    struct stat found {};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    auto client = RawClient::Unix(path);
    client.Send("GET /u HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(BodyOf(client.ReadResponse()), "GET /u ");
  }
  EXPECT_FALSE(Exists(path));
}

TEST(HttpServer, TakesOverAStaleSocketButNeitherALiveOneNorAFile) {
  TempDir dir;
  const std::string path = dir / "s";
  {
    const UniqueFd left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = UnixAddress::For(path).value();
    ASSERT_EQ(::bind(left.get(), address.get(), address.size), 0);
  }
  ASSERT_TRUE(Exists(path));
  Loop loop;
  HttpServer first(loop, Echo);
  EXPECT_TRUE(first.ListenUnix(path).ok());
  HttpServer second(loop, Echo);
  EXPECT_EQ(second.ListenUnix(path).error().code, ErrorCode::kConflict);
  second.Stop();
  EXPECT_TRUE(Exists(path));

  const std::string file = dir / "file";
  ASSERT_TRUE(ReplaceFile(file, "precious").ok());
  EXPECT_EQ(second.ListenUnix(file).error().code, ErrorCode::kConflict);
  EXPECT_EQ(ReadFile(file).value(), "precious");
}

TEST(HttpServer, SaysWhichAddressIsTakenOrWrong) {
  Loop loop;
  HttpServer server(loop, Echo);
  const uint16_t port = server.ListenTcp("127.0.0.1", 0).value();
  const auto taken = server.ListenTcp("127.0.0.1", port);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kConflict);
  EXPECT_NE(taken.error().what.find(std::to_string(port)), std::string::npos);
  EXPECT_EQ(server.ListenTcp("localhost", 0).error().code, ErrorCode::kInvalid);
}

TEST(HttpServer, ClosesEverythingWhenItStops) {
  TestServer server([](Request, Responder responder) {
    auto stream = std::make_shared<Stream>(responder.BeginStream({}));
    stream->OnClosed([stream] {});
  });
  auto idle = RawClient::Tcp(server.port());
  auto streaming = RawClient::Tcp(server.port());
  streaming.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  streaming.ReadUntil("\r\n\r\n");
  server.Until([&] { return server.server().connections() == 2; });
  server.OnLoop([&] { server.server().Stop(); });
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_EQ(streaming.ReadAll(), "");
}

TEST(HttpServer, AnswersAfterItWasDestroyedAreIgnored) {
  Loop loop;
  std::optional<Responder> kept;
  auto server = std::make_unique<HttpServer>(loop, [&](Request, Responder responder) {
    kept = responder;
    loop.Stop();
  });
  const uint16_t port = server->ListenTcp("127.0.0.1", 0).value();
  auto client = RawClient::Tcp(port);
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  loop.Run();
  server.reset();
  kept->Send(Response::Text(200, "late"));
  EXPECT_EQ(client.ReadAll(), "");
}

}  // namespace
}  // namespace athanor
