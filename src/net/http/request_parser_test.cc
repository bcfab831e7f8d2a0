#include "net/http/request_parser.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

// Feeds as a connection does: what is not taken is given again with more.
std::string FeedBy(size_t step, std::string_view bytes, RequestParser& parser) {
  std::string body;
  std::string pending;
  for (size_t at = 0; at < bytes.size(); at += step) {
    pending += bytes.substr(at, step);
    for (;;) {
      const size_t taken = parser.Feed(pending, [&](std::string_view piece) { body += piece; });
      pending.erase(0, taken);
      if (taken == 0 || parser.done() || parser.problem()) break;
    }
  }
  return body + "|" + pending;
}

TEST(RequestParser, GivesTheSameHoweverTheBytesAreCut) {
  const std::string text =
      "\r\nPUT /a%20b/c?x=1&y=a+b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
      "Expect: 100-continue\r\n\r\n5\r\nhello\r\n3;e\r\n, w\r\n0\r\nHost: trailer\r\n\r\nNEXT";
  for (const size_t step : {1, 2, 3, 10, 1000}) {
    RequestParser parser(64 << 10);
    EXPECT_EQ(FeedBy(step, text, parser), "hello, w|NEXT") << step;
    EXPECT_TRUE(parser.done());
    EXPECT_TRUE(parser.expects_continue());
    EXPECT_TRUE(parser.keep_alive());
    EXPECT_FALSE(parser.content_length());
    const Request& request = parser.request();
    EXPECT_EQ(request.method, "PUT");
    EXPECT_EQ(request.raw_path, "/a%20b/c");
    EXPECT_EQ(request.path, "/a b/c");
    EXPECT_EQ(request.raw_query, "x=1&y=a+b");
    EXPECT_EQ(request.Query("y"), "a b");
    EXPECT_EQ(request.headers.Count("host"), 1U);  // a trailer is no header
  }
}

TEST(RequestParser, KeepsUnknownMethodsForTheRouterToJudge) {
  RequestParser parser(64 << 10);
  FeedBy(100, "BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n", parser);
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.request().method, "BREW");
}

TEST(RequestParser, TakesBodiesLargerThanBeastsOwnLimit) {
  RequestParser parser(64 << 10);
  const std::string body(3 << 20, 'b');
  EXPECT_EQ(FeedBy(100'000, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3145728\r\n\r\n" + body,
                   parser),
            body + "|");
  EXPECT_EQ(parser.content_length(), 3U << 20);
}

}  // namespace
}  // namespace athanor
