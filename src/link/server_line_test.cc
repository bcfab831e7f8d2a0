#include "link/server_line.h"

#include <gtest/gtest.h>

#include "link/strangers_testing.h"

namespace athanor {
namespace {

HttpCall Question(const ServerLine& line) {
  HttpCall call;
  call.target = "/agent/v1/secrets";
  line.Sign(call);
  return call;
}

// Planted bug: accept http:// to any host.
TEST(ServerLine, CarriesNoTokenInTheOpen) {
  EXPECT_TRUE(ServerLine::To("https://10.0.0.5:7071", "pin", "t"));
  EXPECT_TRUE(ServerLine::To("unix:/run/a.sock", "", "t"));
  EXPECT_TRUE(ServerLine::To("http://127.0.0.1:7070", "", "t"));
  for (const char* server : {"http://10.0.0.5:7071", "http://server:7071", "", "7071"}) {
    const auto line = ServerLine::To(server, "", "t");
    ASSERT_FALSE(line) << server;
    EXPECT_EQ(line.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(line.error().hint.empty());
  }
}

TEST(ServerLine, IsThatOfThePlan) {
  AttemptPlan plan;
  plan.server = "https://10.0.0.5:7071";
  plan.pin = "abc";
  plan.token = "athjob_x";
  const auto line = ServerLine::Of(plan).value();
  EXPECT_EQ(line.endpoint.ToString(), plan.server);
  EXPECT_EQ(line.pin, plan.pin);
  EXPECT_FALSE(line.is_local());
  EXPECT_EQ(Question(line).headers.Get("Authorization"), "Bearer athjob_x");
}

// Planted bug: make the client without the pin.
TEST(ServerLine, TellsAStrangerNothing) {
  KeyedServer server;
  server.UpAsStranger();
  const auto line = ServerLine::To(server.url(), server.pin(), "secret").value();
  auto client = line.Client();
  const auto reply = client.Do(Question(line));
  ASSERT_FALSE(reply);
  EXPECT_TRUE(IsStranger(reply.error())) << reply.error().what;
  EXPECT_NE(reply.error().why.find(server.pin().substr(0, 12)), std::string::npos)
      << reply.error().why;
  EXPECT_NE(reply.error().why.find(server.other_pin().substr(0, 12)), std::string::npos);
  EXPECT_EQ(reply.error().why.find(server.pin()), std::string::npos) << "shortened";
  EXPECT_EQ(server.heard(), 0);
  server.Up();
  EXPECT_TRUE(client.Do(Question(line)));
}

// Planted bug: end at the first stranger.
TEST(ServerLine, AsksAgainUntilItsOwnServerAnswers) {
  KeyedServer server;
  server.UpAsStranger();
  const auto line = ServerLine::To(server.url(), server.pin(), "secret").value();
  auto client = line.Client();
  const SystemClock clock;
  const LogFile file;
  Logger log(file.fd(), clock);
  int tries = 0;
  const auto again = [&]() -> Status {
    if (++tries == 3) server.Down();
    if (tries == 5) server.Up();
    return Ok();
  };
  const auto reply = AskPatiently(line, client, Question(line), &log, again, Millis(1));
  ASSERT_TRUE(reply) << reply.error().what;
  EXPECT_GE(tries, 5);
  EXPECT_EQ(server.heard(), 1);
  EXPECT_EQ(file.Count("\n"), 1u) << file.text();
  EXPECT_EQ(file.Count(server.other_pin().substr(0, 12)), 1u) << file.text();
}

TEST(ServerLine, DoesNotWaitForAServerOfThisMachine) {
  const TestDir dir;
  const auto line = ServerLine::To("unix:" + (dir / "none"), "", "t").value();
  auto client = line.Client();
  EXPECT_EQ(AskPatiently(line, client, Question(line)).error().code, ErrorCode::kUnavailable);
}

TEST(LinePauses, GrowToALimitAndAreLongForStrangers) {
  LinePauses pauses;
  const Error away{ErrorCode::kUnavailable, "away"};
  const Error stranger{ErrorCode::kDenied, "another server"};
  EXPECT_LE(pauses.After(away), LinePauses::kFirst);
  Millis last{0};
  for (int i = 0; i < 20; ++i) last = pauses.After(away);
  EXPECT_GE(last, LinePauses::kLongest / 2);
  EXPECT_LE(last, LinePauses::kLongest);
  EXPECT_GE(pauses.After(stranger), LinePauses::kOfStranger / 2);
  pauses.Answered();
  EXPECT_LE(pauses.After(away), LinePauses::kFirst);
}

}  // namespace
}  // namespace athanor
