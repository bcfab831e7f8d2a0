#include "steer/attempt_tokens.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

// Planted bug: sign the attempt only. A host could then report as another one.
TEST(Tokens, AnAgentsTokenIsGoodForOneHostOfOneAttempt) {
  const std::string key = "secret";
  const auto attempt = AttemptId::New();
  const auto first = IngestToken(key, attempt, 0);
  EXPECT_EQ(first.find('.'), std::string::npos) << "as before there were hosts";
  for (const uint32_t host : {0u, 1u, 12u}) {
    const auto agent = ReadIngestToken(key, IngestToken(key, attempt, host));
    ASSERT_TRUE(agent);
    EXPECT_EQ(agent->attempt, attempt);
    EXPECT_EQ(agent->host, host);
  }
  const auto token = IngestToken(key, attempt, 1);
  const auto at = token.find('.') + 1;
  for (const char* other : {"0", "2", "01", "11", "", "x", "4294967297", "-1"}) {
    auto forged = token;
    forged.replace(at, 1, other);
    EXPECT_FALSE(ReadIngestToken(key, forged)) << forged;
  }
  EXPECT_FALSE(ReadIngestToken(key, IngestToken(key, AttemptId::New(), 1) + "x"));
  EXPECT_FALSE(ReadIngestToken("another key", token));
  EXPECT_FALSE(ReadIngestToken(key, RunToken(key, attempt)));
  EXPECT_FALSE(ReadRunToken(key, first));
  EXPECT_EQ(ReadRunToken(key, RunToken(key, attempt)), attempt);
  EXPECT_FALSE(ReadIngestToken(key, ""));
}

}  // namespace
}  // namespace athanor
