#include "run/mlflow/mlflow_proxy.h"
#include "base/exec/mutex.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/io/test_dir.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "job/causes.h"
#include "link/kept_call.h"
#include "link/strangers_testing.h"
#include "net/http/http_client.h"
#include "net/test_server.h"
#include "run/mlflow/call_kinds.h"

namespace athanor {
namespace {

constexpr char kRun[] = "0123456789abcdef0123456789abcdef";

std::string MetricBody(int step) {
  return "{\"run_id\":\"" + std::string(kRun) +
         "\",\"key\":\"m\",\"value\":1,\"timestamp\":1,\"step\":" + std::to_string(step) + "}";
}
const std::string kParamBody =
    "{\"run_id\":\"" + std::string(kRun) + "\",\"key\":\"p\",\"value\":\"1\"}";

// The steps of the metrics that requests brought, in order.
std::vector<int> StepsOf(const std::vector<Request>& requests) {
  std::vector<int> steps;
  for (const auto& request : requests) {
    const auto body = ParseJson(request.body).value();
    if (!body.contains("metrics")) {
      if (body.contains("step")) steps.push_back(body["step"].get<int>());
      continue;
    }
    for (const auto& metric : body["metrics"]) steps.push_back(metric["step"].get<int>());
  }
  return steps;
}

std::vector<int> UpTo(int count) {
  std::vector<int> steps;
  for (int i = 0; i < count; ++i) steps.push_back(i);
  return steps;
}

// A server that remembers what it took, can be away (the port closed), and can refuse.
class FakeServer {
 public:
  void Up() {
    server_ = std::make_unique<testing::TestServer>(
        [this](Request request, Responder responder) {
          MutexLock lock(mutex_);
          taken_.push_back(std::move(request));
          changed_.notify_all();
          if (lose_answers > 0 && lose_answers-- > 0) return responder.BeginStream({}).Abort();
          const bool bad = taken_.back().body.find("\"bad\"") != std::string::npos;
          responder.Send(Response::Json(bad ? 400 : status.load(), answer_));
        },
        HttpServerOptions{},
        [](const Request&) {
          BodyPolicy policy;
          policy.max_bytes = 1 << 30;
          return policy;
        });
    if (port_ == 0) {
      port_ = server_->port();
    } else {
      server_->OnLoop([this] { ASSERT_TRUE(server_->server().ListenTcp("127.0.0.1", port_)); });
    }
  }
  void Down() { server_.reset(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<Request> taken() {
    MutexLock lock(mutex_);
    return taken_;
  }
  void Until(size_t count) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return taken_.size() >= count; });
  }

  std::atomic<int> status{200};
  std::atomic<int> lose_answers{0};
  void Say(std::string text) {
    MutexLock lock(mutex_);
    answer_ = std::move(text);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string answer_ GUARDED_BY(mutex_) = "{}";
  std::vector<Request> taken_ GUARDED_BY(mutex_);
  uint16_t port_ = 0;
  std::unique_ptr<testing::TestServer> server_;
};

class MlflowProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up();
    Restart();
  }
  void TearDown() override { proxy_.reset(); }

  void Restart() {
    proxy_.reset();
    MlflowProxy::Options options{dir_ / "mlflow", server_.url(), "athrun_secret", log_,
                                 [this](Cause cause) {
                                   MutexLock lock(mutex_);
                                   notes_.push_back(std::move(cause));
                                 }};
    options.ask_patience = Millis(300);
    options.most_kept = most_kept_;
    options.page = "http://127.0.0.1:7070";
    options.run = *JobId::Parse(kRun);
    options.on_points = [this](const PointBatch& batch) {
      MutexLock lock(mutex_);
      for (const auto& item : batch.items) seen_.push_back(static_cast<int>(*item.point.step));
    };
    auto started = MlflowProxy::Start(std::move(options));
    ASSERT_TRUE(started) << started.error().what;
    proxy_ = std::move(*started);
  }

  HttpReply Call(const std::string& method, const std::string& target, std::string body = "",
                 const std::string& authorization = "Bearer athrun_secret") {
    HttpClient client(*Endpoint::Parse(proxy_->url()));
    HttpCall call;
    call.method = method;
    call.target = target;
    call.body = std::move(body);
    if (!authorization.empty()) call.headers.Add("Authorization", authorization);
    call.headers.Add("Content-Type", "application/json");
    auto reply = client.Do(call);
    EXPECT_TRUE(reply) << reply.error().what;
    return reply ? *reply : HttpReply{};
  }
  HttpReply LogMetric(int step) {
    return Call("POST", "/api/2.0/mlflow/runs/log-metric", MetricBody(step));
  }
  std::vector<int> TakeSeen() {
    MutexLock lock(mutex_);
    return std::exchange(seen_, {});
  }
  std::vector<Cause> notes() {
    MutexLock lock(mutex_);
    return notes_;
  }

  TestDir dir_;
  SystemClock clock_;
  Logger log_{STDERR_FILENO, clock_, LogLevel::kOff};
  uint64_t most_kept_ = 1 << 20;
  FakeServer server_;
  Mutex mutex_;
  std::vector<Cause> notes_ GUARDED_BY(mutex_);
  std::vector<int> seen_ GUARDED_BY(mutex_);  // steps that on_points had
  std::unique_ptr<MlflowProxy> proxy_;
};

TEST_F(MlflowProxyTest, DeliversWhatIsLoggedInOrderWithTheJobsToken) {
  EXPECT_EQ(LogMetric(0).body, "{}");
  EXPECT_TRUE(proxy_->Drain());  // else it may be joined with its neighbours, which is as well
  for (int i = 1; i < 50; ++i) EXPECT_EQ(LogMetric(i).body, "{}");
  EXPECT_TRUE(proxy_->Drain());
  const auto taken = server_.taken();
  ASSERT_EQ(StepsOf(taken), UpTo(50));
  EXPECT_EQ(taken[0].body, MetricBody(0));
  uint64_t seq = 1;
  for (const auto& one : taken) {
    EXPECT_EQ(one.headers.Get("Authorization"), "Bearer athrun_secret");
    const auto place = ParsePlace(one.headers.Get(kPlaceHeader));
    ASSERT_TRUE(place);
    EXPECT_EQ(place->seq, seq);
    seq += std::max<size_t>(1, place->ends.size());
  }
}

// Planted bugs that turn these red: a joined call without the ends of its calls in its place (what
// is sent again has other numbers then, and is there twice); Done with the number of the first
// call only (the rest is sent again); no second try one by one (a refusal takes good calls along).
TEST_F(MlflowProxyTest, WhatWaitsIsDeliveredInBatches) {
  server_.Down();
  for (int i = 0; i < 2'500; ++i) ASSERT_EQ(LogMetric(i).status, 200);
  Call("POST", "/api/2.0/mlflow/runs/set-tag", kParamBody);
  LogMetric(2'500);
  server_.lose_answers = 1;
  server_.Up();
  EXPECT_TRUE(proxy_->Drain());
  auto taken = server_.taken();
  ASSERT_EQ(taken.size(), 6u) << "three batches, one of them twice, a tag and a metric";
  EXPECT_EQ(taken[0].body, taken[1].body);
  EXPECT_EQ(taken[0].headers.Get(kPlaceHeader), taken[1].headers.Get(kPlaceHeader));
  taken.erase(taken.begin());
  EXPECT_EQ(StepsOf(taken), UpTo(2'501));
  uint64_t seq = 0;
  for (const auto& one : taken) {
    const auto place = ParsePlace(one.headers.Get(kPlaceHeader));
    ASSERT_TRUE(place);
    for (size_t i = 0; i < std::max<size_t>(1, place->ends.size()); ++i) {
      EXPECT_EQ(SeqOfPoint(*place, i), SeqOfPoint({place->channel, ++seq, {}}, 0));
    }
  }
  EXPECT_EQ(taken[0].path, "/api/2.0/mlflow/runs/log-batch");
  EXPECT_EQ(taken[4].body, MetricBody(2'500));
}

TEST_F(MlflowProxyTest, ACallThatIsRefusedTakesNoNeighbourWithIt) {
  server_.Down();
  for (int i = 0; i < 10; ++i) LogMetric(i);
  std::string bad = MetricBody(10);
  bad.replace(bad.find("\"m\""), 3, "\"bad\"");
  Call("POST", "/api/2.0/mlflow/runs/log-metric", bad);
  for (int i = 11; i < 20; ++i) LogMetric(i);
  server_.Up();
  EXPECT_TRUE(proxy_->Drain());
  auto taken = server_.taken();
  const auto refused_whole = [](const Request& one) {
    return EndsWith(one.path, "/log-batch") && one.body.find("bad") != std::string::npos;
  };
  EXPECT_EQ(std::erase_if(taken, refused_whole), 1u);
  EXPECT_EQ(StepsOf(taken), UpTo(20));
  proxy_.reset();
  EXPECT_EQ(notes().size(), 1u);
}

TEST_F(MlflowProxyTest, KeepsWhatIsLoggedWhileTheServerIsAway) {
  server_.Down();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(LogMetric(i).status, 200);
  EXPECT_EQ(Call("POST", "/api/2.0/mlflow/runs/log-parameter", kParamBody).body, "{}");
  const auto update = Call("POST", "/api/2.0/mlflow/runs/update",
                           "{\"run_id\":\"" + std::string(kRun) + "\",\"status\":\"FINISHED\"}");
  EXPECT_NE(update.body.find("\"run_info\""), std::string::npos);
  EXPECT_NE(update.body.find(kRun), std::string::npos);
  server_.Up();
  EXPECT_TRUE(proxy_->Drain());
  const auto taken = server_.taken();
  EXPECT_EQ(StepsOf(taken), UpTo(20));
  ASSERT_GE(taken.size(), 3u);
  EXPECT_EQ(taken[taken.size() - 2].path, "/api/2.0/mlflow/runs/log-parameter");
  EXPECT_EQ(taken.back().path, "/api/2.0/mlflow/runs/update");
}

TEST_F(MlflowProxyTest, ARestartedAgentListensOnTheSamePortAndDeliversTheRest) {
  server_.Down();
  for (int i = 0; i < 10; ++i) LogMetric(i);
  const std::string url = proxy_->url();
  Restart();
  EXPECT_EQ(proxy_->url(), url);
  LogMetric(10);
  server_.Up();
  EXPECT_TRUE(proxy_->Drain());
  EXPECT_EQ(StepsOf(server_.taken()), UpTo(11));
}

TEST_F(MlflowProxyTest, PointsOfTheJobsRunAreSeenBeforeTheAnswerAndOnlyOnce) {
  LogMetric(1);
  EXPECT_EQ(TakeSeen(), std::vector<int>{1});
  std::string other = MetricBody(2);
  other[other.find(kRun)] = 'f';
  Call("POST", "/api/2.0/mlflow/runs/log-metric", other);
  EXPECT_TRUE(proxy_->Drain());
  EXPECT_EQ(TakeSeen(), std::vector<int>());
}

TEST_F(MlflowProxyTest, ARestartedAgentSeesWhatWasNotDeliveredAndNothingElseAgain) {
  LogMetric(1);
  EXPECT_TRUE(proxy_->Drain());
  server_.Down();
  for (int step = 2; step <= 4; ++step) LogMetric(step);
  TakeSeen();
  Restart();
  EXPECT_EQ(TakeSeen(), (std::vector<int>{2, 3, 4}));
  server_.Up();
  EXPECT_TRUE(proxy_->Drain());
  EXPECT_EQ(TakeSeen(), std::vector<int>());
}

TEST_F(MlflowProxyTest, SendsAgainWithTheSamePlaceWhenTheAnswerWasLost) {
  server_.lose_answers = 3;
  LogMetric(1);
  EXPECT_TRUE(proxy_->Drain());
  const auto taken = server_.taken();
  ASSERT_GE(taken.size(), 4u);
  for (const auto& one : taken) {
    EXPECT_EQ(one.headers.Get(kPlaceHeader), taken[0].headers.Get(kPlaceHeader));
  }
}

TEST_F(MlflowProxyTest, AQuestionComesAfterWhatWasLoggedBeforeIt) {
  for (int i = 0; i < 30; ++i) LogMetric(i);
  server_.Say("{\"run\":{}}");
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/runs/get?run_id=x").body, "{\"run\":{}}");
  auto taken = server_.taken();
  EXPECT_EQ(taken.back().target, "/api/2.0/mlflow/runs/get?run_id=x");
  taken.pop_back();
  EXPECT_EQ(StepsOf(taken), UpTo(30));
}

TEST_F(MlflowProxyTest, AQuestionIsAnsweredByAnErrorThatClientsTryAgain) {
  server_.Down();
  const auto reply = Call("GET", "/api/2.0/mlflow/runs/get?run_id=x");
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.body.find("TEMPORARILY_UNAVAILABLE"), std::string::npos);
}

TEST_F(MlflowProxyTest, ARunThatWasReadBeforeIsAnsweredAsItWasThen) {
  server_.Say("{\"run\":{}}");
  Call("GET", "/api/2.0/mlflow/runs/get?run_id=x");
  server_.Down();
  LogMetric(1);
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/runs/get?run_id=x").body, "{\"run\":{}}");
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/runs/get?run_id=y").status, 503);
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/metrics/get-history?run_id=x").status, 503);
}

TEST_F(MlflowProxyTest, ARefusalReachesAScriptThatWaitsAndIsNotedOtherwise) {
  server_.status = 400;
  const std::string words = "{\"error_code\":\"INVALID_PARAMETER_VALUE\",\"message\":\"no\"}";
  server_.Say(words);
  const auto param = Call("POST", "/api/2.0/mlflow/runs/log-parameter", kParamBody);
  EXPECT_EQ(param.status, 400);
  EXPECT_EQ(param.body, words);
  EXPECT_TRUE(notes().empty());
  EXPECT_EQ(LogMetric(1).status, 200);
  EXPECT_TRUE(proxy_->Drain());
  proxy_.reset();
  ASSERT_EQ(notes().size(), 1u);
  EXPECT_NE(FindCause(notes()[0].kind), nullptr);
}

TEST_F(MlflowProxyTest, WhatCannotBeKeptIsDroppedAndToldAndTheScriptGoesOn) {
  server_.Down();
  most_kept_ = 1'000;
  Restart();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(LogMetric(i).status, 200);
  ASSERT_FALSE(notes().empty());
  EXPECT_NE(FindCause(notes()[0].kind), nullptr);
}

TEST_F(MlflowProxyTest, OnlyTheJobsOwnTokenIsLetInAndOnlyToMlflow) {
  EXPECT_EQ(Call("POST", "/api/2.0/mlflow/runs/log-metric", MetricBody(1), "").status, 403);
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/runs/get", "", "Bearer athrun_other").status, 403);
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/runs/get", "", "Bearer athrun_secre").status, 403);
  EXPECT_EQ(Call("GET", "/api/v1/jobs").status, 404);
  EXPECT_EQ(Call("POST", "/agent/v1/report").status, 404);
  EXPECT_EQ(server_.taken().size(), 0u);
  EXPECT_EQ(Call("GET", "/version", "", "").status, 200);
  // "u:athrun_secret", as clients with a user name and a password send it.
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow/runs/get", "", "Basic dTphdGhydW5fc2VjcmV0").status, 200);
}

// Planted bug: ask the job's token of a browser too.
TEST_F(MlflowProxyTest, ABrowserIsSentOnToTheServersPage) {
  const auto reply = Call("GET", "/", "", "");
  EXPECT_EQ(reply.status, 302);
  EXPECT_EQ(reply.headers.Get("Location"), "http://127.0.0.1:7070/");
  EXPECT_TRUE(server_.taken().empty());
}

TEST_F(MlflowProxyTest, FilesPassBothWays) {
  const std::string big(3 << 20, 'b');
  EXPECT_EQ(Call("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/a.bin", big).status, 200);
  ASSERT_EQ(server_.taken().size(), 1u);
  EXPECT_EQ(server_.taken()[0].body, big);
  server_.Say(big);
  EXPECT_EQ(Call("GET", "/api/2.0/mlflow-artifacts/artifacts/0/a.bin").body, big);
}

TEST_F(MlflowProxyTest, GivingUpEndsTheWait) {
  server_.Down();
  LogMetric(1);
  std::thread other([this] { proxy_->GiveUp(); });
  EXPECT_FALSE(proxy_->Drain());
  other.join();
}

TEST(MlflowCallKinds, WhatIsNotPlainlyWholeIsAsked) {
  constexpr std::string_view kMetric = "/api/2.0/mlflow/runs/log-metric";
  EXPECT_EQ(KindOf("POST", kMetric, MetricBody(1)), CallKind::kLog);
  for (const char* body :
       {"", "{", "[]", "{\"run_id\":\"\"}", "{\"run_id\":\"a\",\"key\":\"k\"}"}) {
    EXPECT_EQ(KindOf("POST", kMetric, body), CallKind::kAsk) << body;
  }
  EXPECT_EQ(KindOf("GET", kMetric, MetricBody(1)), CallKind::kAsk);
  EXPECT_EQ(
      KindOf("POST", "/ajax-api/2.0/mlflow/runs/log-batch", "{\"run_id\":\"a\",\"params\":[]}"),
      CallKind::kTell);
  EXPECT_EQ(KindOf("POST", "/api/2.0/mlflow/runs/create", "{\"run_id\":\"a\"}"), CallKind::kAsk);
  EXPECT_EQ(KindOf("GET", "/api/2.0/mlflowx", ""), CallKind::kRefused);
  EXPECT_EQ(KindOf("GET", "/", ""), CallKind::kPage);
  EXPECT_EQ(KindOf("POST", "/", ""), CallKind::kRefused);
  EXPECT_TRUE(AnswersFile("GET", "/ajax-api/2.0/mlflow/logged-models/m-1/artifacts/files"));
}

// Planted bugs: drop the call, or tell the stranger.
TEST(MlflowProxyOfAnotherMachine, KeepsCallsWhileAStrangerAnswersInItsServersPlace) {
  KeyedServer server(
      [](Request, const Responder& responder) { responder.Send(Response::Json(200, "{}")); });
  server.UpAsStranger();
  const TestDir dir;
  const SystemClock clock;
  const LogFile file;
  Logger log(file.fd(), clock);
  MlflowProxy::Options options{dir / "mlflow", server.url(), "athrun_secret", log, [](Cause) {}};
  options.pin = server.pin();
  options.stranger_pause = Millis(1);
  options.ask_patience = Millis(300);
  const auto proxy = MlflowProxy::Start(std::move(options)).value();
  HttpClient client(*Endpoint::Parse(proxy->url()));
  const auto call = [&client](const char* method, const char* target, std::string body) {
    HttpCall made;
    made.method = method;
    made.target = target;
    made.body = std::move(body);
    made.headers.Add("Authorization", "Bearer athrun_secret");
    return client.Do(made).value().status;
  };
  EXPECT_EQ(call("POST", "/api/2.0/mlflow/runs/log-metric", MetricBody(1)), 200);
  // What needs an answer can be asked again later, as always.
  EXPECT_EQ(call("GET", "/api/2.0/mlflow/experiments/get?experiment_id=0", ""), 503);
  while (file.Count(server.other_pin().substr(0, 12)) == 0) std::this_thread::yield();
  EXPECT_EQ(server.heard(), 0);
  server.Down();
  server.Up();
  EXPECT_TRUE(proxy->Drain());
  EXPECT_EQ(server.heard(), 1);
}

}  // namespace
}  // namespace athanor
