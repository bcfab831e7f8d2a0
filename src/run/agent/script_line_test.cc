#include "run/agent/script_line.h"
#include "base/exec/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "link/job_files_testing.h"
#include "link/strangers_testing.h"
#include "net/http/http_client.h"

namespace athanor {
namespace {

class ScriptLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up();
    line_ = ServerLine::To(server_.url(), server_.pin(), "the agent's token").value();
    Start();
  }
  void Start() {
    line_of_script_.reset();
    line_of_script_ = ScriptLine::Start({line_, dir_ / "port", log_}).value();
  }
  HttpClient Client() const { return HttpClient(Endpoint::Parse(line_of_script_->url()).value()); }

  Mutex mutex_;
  std::vector<Headers> heads_ GUARDED_BY(mutex_);
  // Sends back what it gets.
  KeyedServer server_{[this](Request request, const Responder& responder) {
    {
      const MutexLock lock(mutex_);
      heads_.push_back(request.headers);
    }
    responder.Send(Response::Text(200, std::move(request.body)));
  }};
  TestDir dir_;
  SystemClock clock_;
  LogFile file_;
  Logger log_{file_.fd(), clock_};
  ServerLine line_;
  std::unique_ptr<ScriptLine> line_of_script_;
};

// Planted bugs: write Host anew, or add the agent's token.
TEST_F(ScriptLineTest, PassesBytesOnUnchanged) {
  auto client = Client();
  HttpCall call;
  call.target = "/";
  call.headers.Add("Authorization", "what the script says");
  ASSERT_TRUE(client.Do(call));
  const MutexLock lock(mutex_);
  ASSERT_EQ(heads_.size(), 1u);
  EXPECT_EQ(heads_[0].Get("Host"), line_of_script_->url().substr(7));
  EXPECT_EQ(heads_[0].Get("Authorization"), "what the script says");
  EXPECT_EQ(heads_[0].Count("Authorization"), 1u);
}

// Planted bug: wait for the socket while TLS still holds bytes.
TEST_F(ScriptLineTest, PassesMuchInBothDirectionsAtOnce) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      auto client = Client();
      for (uint32_t round = 0; round < 3; ++round) {
        const auto bytes = SomeBytes((8 << 20) + 1'000 * i + round, 10 * i + round);
        HttpCall call;
        call.method = "POST";
        call.body = bytes;
        const auto reply = client.Do(call);
        ASSERT_TRUE(reply) << reply.error().what << ": " << reply.error().why;
        EXPECT_TRUE(reply->body == bytes);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(ScriptLineTest, PassesOnThatOneSideHasNoMoreToSay) {
  auto client = testing::RawClient::Tcp(Endpoint::Parse(line_of_script_->url())->port);
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  client.EndWrites();
  EXPECT_NE(client.ReadAll().find("200 OK"), std::string::npos);
}

// Planted bug: any free port for the next agent.
TEST_F(ScriptLineTest, ComesBackAtTheSamePort) {
  const auto url = line_of_script_->url();
  Start();
  EXPECT_EQ(line_of_script_->url(), url);
  EXPECT_TRUE(Client().Get("/"));
}

// Planted bug: pass on to whoever answers at the address.
TEST_F(ScriptLineTest, LeadsToNoOtherServerAndBackToItsOwn) {
  ASSERT_TRUE(Client().Get("/"));
  server_.UpAsStranger();
  const int before = server_.heard();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Client().Get("/"));
  EXPECT_EQ(server_.heard(), before);
  EXPECT_EQ(file_.Count("another server answers"), 1u) << file_.text();
  server_.Down();
  EXPECT_FALSE(Client().Get("/"));
  server_.Up();
  EXPECT_TRUE(Client().Get("/"));
}

// Planted bug: no limit for the time until a connection stands.
TEST_F(ScriptLineTest, GivesUpOnAServerThatDoesNotShakeHands) {
  // Connections are made by the kernel; nobody says anything.
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof any;
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&any), size), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  const auto line =
      ServerLine::To("https://127.0.0.1:" + std::to_string(ntohs(any.sin_port)), server_.pin(), "t")
          .value();
  const auto script = ScriptLine::Start({line, dir_ / "other", log_, Millis(50)}).value();
  HttpClient client(Endpoint::Parse(script->url()).value());
  EXPECT_EQ(client.Get("/").error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace athanor
