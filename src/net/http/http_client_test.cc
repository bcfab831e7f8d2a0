#include "net/http/http_client.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "net/http/http_server.h"
#include "net/http/sse.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;
using testing::TempDir;
using testing::TestServer;

void Echo(Request request, Responder responder) {
  Response response = Response::Text(200, request.method + " " + request.target + " " +
                                              std::to_string(request.body.size()) + " " +
                                              request.body.substr(0, 20));
  response.headers.Set("X-Seen", std::string(request.headers.Get("X-Sent")));
  response.headers.Set("X-Host", std::string(request.headers.Get("Host")));
  response.headers.Set("X-Peer", request.peer.address);
  responder.Send(std::move(response));
}

Endpoint At(const TestServer& server) { return Endpoint{"", "127.0.0.1", server.port()}; }

// A server of one scripted conversation per accepted connection.
class Scripted {
 public:
  using Script = std::function<void(int fd)>;
  explicit Scripted(std::vector<Script> scripts) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    endpoint_ = Endpoint{"", "127.0.0.1", ntohs(address.sin_port)};
    thread_ = std::thread([this, scripts = std::move(scripts)] {
      for (const auto& script : scripts) {
        const UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (fd) script(fd.get());
      }
    });
  }
  ~Scripted() { thread_.join(); }
  const Endpoint& endpoint() const { return endpoint_; }

  static std::string ReadHead(int fd) {
    std::string head;
    char byte;
    while (!head.ends_with("\r\n\r\n") && ::recv(fd, &byte, 1, 0) == 1) head += byte;
    return head;
  }
  static void Say(int fd, std::string_view bytes) { EXPECT_TRUE(WriteAll(fd, bytes).ok()); }

 private:
  UniqueFd listener_;
  Endpoint endpoint_;
  std::thread thread_;
};

TEST(Endpoint, ParsesAddressesAndSaysWhatIsWrong) {
  EXPECT_EQ(Endpoint::Parse("unix:/run/a.sock").value().unix_path, "/run/a.sock");
  EXPECT_EQ(Endpoint::Parse("http://localhost:7070").value(), (Endpoint{"", "localhost", 7070}));
  EXPECT_EQ(Endpoint::Parse("http://h/").value(), (Endpoint{"", "h", 80}));
  EXPECT_EQ(Endpoint::Parse("http://[::1]:99").value(), (Endpoint{"", "::1", 99}));
  EXPECT_EQ(Endpoint::Parse("http://[::1]:99").value().ToString(), "http://[::1]:99");
  EXPECT_EQ(Endpoint::Parse("https://h").value(), (Endpoint{"", "h", 443, true}));
  EXPECT_EQ(Endpoint::Parse("https://h:7070/").value().ToString(), "https://h:7070");
  for (const char* bad : {"", "localhost:7070", "https://", "http://", "http://:80", "http://h:0",
                          "http://h:x", "http://h:70000", "http://h/path", "http://u@h",
                          "unix:relative", "unix:", "http://[::1", "http://h:"}) {
    const auto parsed = Endpoint::Parse(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(parsed.error().why.empty());
    EXPECT_FALSE(parsed.error().hint.empty());
  }
}

TEST(HttpClient, CallsOverTcpAndUnixAndKeepsTheConnection) {
  TempDir dir;
  TestServer server(Echo);
  const std::string path = dir / "s";
  ASSERT_TRUE(server.OnLoop([&] { return server.server().ListenUnix(path).ok(); }));
  for (const Endpoint& endpoint : {At(server), Endpoint{path, "", 0}}) {
    HttpClient client(endpoint);
    std::string peer;
    for (int i = 0; i < 3; ++i) {
      HttpCall call;
      call.method = "POST";
      call.target = "/x?y=1";
      call.headers.Add("X-Sent", "hello");
      call.body = "body";
      const auto reply = client.Do(call);
      ASSERT_TRUE(reply) << reply.error().what;
      EXPECT_EQ(reply->status, 200);
      EXPECT_EQ(reply->body, "POST /x?y=1 4 body");
      EXPECT_EQ(reply->headers.Get("x-seen"), "hello");
      EXPECT_NE(reply->headers.Get("X-Host"), "");
      if (i == 0) peer = reply->headers.Get("X-Peer");
      EXPECT_EQ(reply->headers.Get("X-Peer"), peer);
    }
  }
}

TEST(HttpClient, SendsAFileAndReceivesIntoOne) {
  TempDir dir;
  constexpr uint64_t kSize = 30'000'000;
  const UniqueFd in(::open((dir / "in").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const UniqueFd out(::open((dir / "out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(in.get(), kSize + 10), 0);
  ASSERT_EQ(::pwrite(in.get(), "mark", 4, kSize + 6), 4);
  TestServer server(
      [](Request request, Responder responder) {
        EXPECT_EQ(request.headers.Get("Expect"), "100-continue");
        UniqueFd copy(::fcntl(request.body_file->get(), F_DUPFD_CLOEXEC, 0));
        responder.SendFile({}, std::move(copy), 0, request.body_size);
      },
      {},
      [&dir](const Request&) {
        BodyPolicy policy;
        policy.max_bytes = 1 << 30;
        policy.spool.reset(
            ::open((dir / "spool").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        return policy;
      });
  HttpClient client(At(server));
  HttpCall call;
  call.method = "PUT";
  call.body_fd = in.get();
  call.body_offset = 10;
  call.body_length = kSize;
  call.body_to_fd = out.get();
  const auto reply = client.Do(call);
  ASSERT_TRUE(reply) << reply.error().what;
  EXPECT_EQ(reply->body, "");
  struct stat got {};
  ASSERT_EQ(::fstat(out.get(), &got), 0);
  EXPECT_EQ(got.st_size, static_cast<off_t>(kSize));
  char mark[4];
  ASSERT_EQ(::pread(out.get(), mark, 4, kSize - 4), 4);
  EXPECT_EQ(std::string_view(mark, 4), "mark");
}

TEST(HttpClient, SeesTheRefusalOfALargeBody) {
  TempDir dir;
  const UniqueFd in(::open((dir / "in").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(in.get(), 50'000'000), 0);
  TestServer server(Echo);
  HttpClient client(At(server));
  HttpCall by_file;
  by_file.method = "PUT";
  by_file.body_fd = in.get();
  by_file.body_length = 50'000'000;
  HttpCall by_string;
  by_string.method = "PUT";
  by_string.body = std::string(50'000'000, 'x');
  for (const HttpCall* call : {&by_file, &by_string, &by_file}) {
    const auto reply = client.Do(*call);
    ASSERT_TRUE(reply) << reply.error().what << " " << reply.error().why;
    EXPECT_EQ(reply->status, 413);
  }
  EXPECT_EQ(client.Get("/after")->status, 200);
}

TEST(HttpClient, StreamsEventsUntilTheReaderStops) {
  std::vector<Stream> kept;
  TestServer server([&kept](Request, Responder responder) {
    Stream stream = responder.BeginStream(Response{200, {{"X-Kind", "events"}}, ""});
    for (int i = 0; i < 5; ++i) stream.Write(FormatSse({std::to_string(i), "", "x"}));
    kept.push_back(stream);
  });
  HttpClient client(At(server));
  SseParser parser;
  std::string kind;
  HttpCall call;
  call.on_head = [&](const HttpReply& reply) { kind = reply.headers.Get("X-Kind"); };
  call.on_body = [&](std::string_view bytes) {
    bool more = true;
    EXPECT_TRUE(parser
                    .Feed(bytes,
                          [&](const SseEvent& event) {
                            EXPECT_EQ(kind, "events");
                            return more = event.id != "3";
                          })
                    .ok());
    return more;
  };
  const auto reply = client.Do(call);
  ASSERT_TRUE(reply) << reply.error().what;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(parser.last_event_id(), "3");
  server.Until([&] { return !kept[0].open(); });
  server.OnLoop([&] { kept.clear(); });
}

TEST(HttpClient, GivesErrorBodiesToTheCallerEvenWhenStreaming) {
  TestServer server(
      [](Request, Responder responder) { responder.Send(Response::Json(404, "{\"error\":1}")); });
  HttpClient client(At(server));
  HttpCall call;
  call.on_body = [](std::string_view) {
    ADD_FAILURE();
    return false;
  };
  const auto reply = client.Do(call);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 404);
  EXPECT_EQ(reply->body, "{\"error\":1}");
}

TEST(HttpClient, SaysWhichAddressDoesNotAnswer) {
  TempDir dir;
  uint16_t free_port = 0;
  {
    Loop loop;
    HttpServer server(loop, Echo);
    free_port = server.ListenTcp("127.0.0.1", 0).value();
  }
  for (const Endpoint& endpoint :
       {Endpoint{"", "127.0.0.1", free_port}, Endpoint{dir / "none", "", 0},
        Endpoint{dir / std::string(200, 'x') + "/s", "", 0}}) {
    HttpClient client(endpoint);
    const auto reply = client.Get("/");
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable) << reply.error().what;
    EXPECT_NE(reply.error().what.find(endpoint.ToString()), std::string::npos);
  }
}

TEST(HttpClient, ConnectsAnewWhenAKeptConnectionWasClosed) {
  HttpServerOptions options;
  options.idle_timeout = milliseconds(20);
  TestServer server(Echo, options);
  HttpClient client(At(server));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(client.PostJson("/", "{}"));
    server.Until([&] { return server.server().connections() == 0; });
  }
}

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// Answers once, then takes a second request and hangs up without a byte.
void AnswerThenDrop(int fd) {
  Scripted::ReadHead(fd);
  Scripted::Say(fd, kOk);
  Scripted::ReadHead(fd);
}

TEST(HttpClient, RepeatsOnlyIdempotentCallsWhenAKeptConnectionDies) {
  Scripted server({AnswerThenDrop, AnswerThenDrop, [](int fd) {
                     Scripted::ReadHead(fd);
                     Scripted::Say(fd, kOk);
                   }});
  HttpClient client(server.endpoint());
  HttpCall call;
  ASSERT_TRUE(client.Do(call));
  call.idempotent = true;
  const auto repeated = client.Do(call);
  ASSERT_TRUE(repeated) << repeated.error().what;
  EXPECT_EQ(repeated->body, "ok");
  call.idempotent = false;
  const auto failed = client.Do(call);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(client.Do(call));
}

TEST(HttpClient, DoesNotRepeatACallThatFailedOnAFreshConnection) {
  Scripted server({[](int fd) { Scripted::ReadHead(fd); }});
  HttpClient client(server.endpoint());
  EXPECT_EQ(client.Get("/").error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, NoticesAnAnswerThatIsCutOff) {
  Scripted server({[](int fd) {
    Scripted::ReadHead(fd);
    Scripted::Say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  }});
  HttpClient client(server.endpoint());
  const auto reply = client.Get("/");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
}

TEST(HttpClient, SaysThatTheOtherSideDoesNotSpeakHttp) {
  Scripted server({[](int fd) { Scripted::Say(fd, "SSH-2.0-something\r\n"); }});
  HttpClient client(server.endpoint());
  EXPECT_EQ(client.Get("/").error().code, ErrorCode::kCorrupt);
}

TEST(HttpClient, GivesUpOnSilenceAndOnCancel) {
  std::vector<Responder> waiting;
  TestServer server([&waiting](Request, Responder responder) { waiting.push_back(responder); });
  HttpClient client(At(server));
  HttpCall call;
  call.read_timeout = milliseconds(30);
  EXPECT_EQ(client.Do(call).error().code, ErrorCode::kTimeout);
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  const UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  call.read_timeout = milliseconds(20'000);
  call.cancel_fd = read_end.get();
  std::thread canceller([&] {
    server.Until([&] { return waiting.size() == 2; });
    write_end.reset();
  });
  EXPECT_EQ(client.Do(call).error().code, ErrorCode::kCancelled);
  canceller.join();
  server.OnLoop([&] { waiting.clear(); });
}

TEST(HttpClient, RefusesToSendForgedRequests) {
  HttpClient client(Endpoint{"", "127.0.0.1", 1});
  HttpCall call;
  call.target = "/ HTTP/1.1\r\nX: y";
  EXPECT_EQ(client.Do(call).error().code, ErrorCode::kInvalid);
  call.target = "/";
  call.headers.Add("X", "a\r\nY: b");
  EXPECT_EQ(client.Do(call).error().code, ErrorCode::kInvalid);
}

TEST(HttpClient, RefusesAnswersLargerThanAllowed) {
  TestServer server([](Request, Responder responder) {
    responder.Send(Response::Text(200, std::string(5000, 'x')));
  });
  HttpClient client(At(server));
  HttpCall call;
  call.max_body = 4999;
  EXPECT_EQ(client.Do(call).error().code, ErrorCode::kExhausted);
  call.max_body = 5000;
  EXPECT_TRUE(client.Do(call));
}

}  // namespace
}  // namespace athanor
