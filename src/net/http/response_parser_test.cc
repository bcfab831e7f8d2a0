#include "net/http/response_parser.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

struct Parsed {
  Status status;
  std::string body;
  size_t taken = 0;
  ResponseParser parser;
  explicit Parsed(bool head) : parser(head) {}
};

Parsed ParseBy(size_t step, std::string_view bytes, bool head = false) {
  Parsed parsed(head);
  while (parsed.taken < bytes.size() && !parsed.parser.done()) {
    const auto taken =
        parsed.parser.Feed(bytes.substr(parsed.taken, step), [&](std::string_view piece) {
          parsed.body += piece;
          return true;
        });
    if (!taken) {
      parsed.status = Fail(taken.error());
      return parsed;
    }
    parsed.taken += *taken;
  }
  return parsed;
}

TEST(ResponseParser, TakesLengthsChunksAndInterimAnswersHoweverTheyAreCut) {
  const std::string length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello";
  const std::string chunked =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: t\r\n\r\n";
  for (const size_t step : {1, 2, 5, 1000}) {
    auto one = ParseBy(step, length + "HTTP/1.1");
    EXPECT_TRUE(one.parser.done());
    EXPECT_EQ(one.taken, length.size());
    EXPECT_EQ(one.body, "hello");
    EXPECT_EQ(one.parser.headers().Get("a"), "b");
    EXPECT_TRUE(one.parser.keep_alive());
    EXPECT_FALSE(one.parser.saw_continue());
    auto two = ParseBy(step, chunked);
    EXPECT_TRUE(two.parser.done());
    EXPECT_EQ(two.parser.status(), 201);
    EXPECT_EQ(two.body, "hello");
    EXPECT_TRUE(two.parser.saw_continue());
  }
}

TEST(ResponseParser, KnowsWhichAnswersHaveNoBody) {
  EXPECT_TRUE(ParseBy(99, "HTTP/1.1 204 No\r\n\r\n").parser.done());
  EXPECT_TRUE(ParseBy(99, "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n").parser.done());
  EXPECT_TRUE(ParseBy(99, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true).parser.done());
}

TEST(ResponseParser, ReadsToTheEndWithoutALengthAndNoticesACutOtherwise) {
  auto open = ParseBy(3, "HTTP/1.0 200 OK\r\n\r\nabc");
  EXPECT_FALSE(open.parser.done());
  EXPECT_TRUE(open.parser.Eof().ok());
  EXPECT_TRUE(open.parser.done());
  EXPECT_FALSE(open.parser.keep_alive());
  EXPECT_EQ(open.body, "abc");
  for (const char* cut : {"", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    EXPECT_EQ(ParseBy(99, cut).parser.Eof().error().code, ErrorCode::kUnavailable) << cut;
  }
}

TEST(ResponseParser, StopsWhereTheReaderStops) {
  ResponseParser parser(false);
  ASSERT_TRUE(parser.Feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
                          [](std::string_view) { return false; }));
  EXPECT_TRUE(parser.stopped());
  EXPECT_FALSE(parser.done());
}

TEST(ResponseParser, RefusesWhatIsNotAResponse) {
  const std::string cases[] = {
      "SSH-2.0-OpenSSH\r\n",
      "HTTP/2 200 OK\r\n",
      "HTTP/1.1 2x0 OK\r\n",
      "HTTP/1.1 099 OK\r\n",
      "HTTP/1.1200 OK\r\n",
      "HTTP/1.1 200 OK\r\nno colon\r\n",
      "HTTP/1.1 200 OK\r\n: x\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n",
      "HTTP/1.1 200 OK\r\nA : b\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
      "HTTP/1.1 200 OK\r\nA: " + std::string(300 << 10, 'a'),
  };
  for (const auto& bytes : cases) {
    const auto parsed = ParseBy(1000, bytes);
    ASSERT_FALSE(parsed.status.ok()) << bytes.substr(0, 100);
    EXPECT_EQ(parsed.status.error().code, ErrorCode::kCorrupt) << bytes.substr(0, 100);
  }
}

}  // namespace
}  // namespace athanor
