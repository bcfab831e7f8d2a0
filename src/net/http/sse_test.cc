#include "net/http/sse.h"

#include <vector>

#include <gtest/gtest.h>

namespace athanor {
namespace {

std::vector<SseEvent> ParseBy(size_t step, std::string_view bytes) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (size_t at = 0; at < bytes.size(); at += step) {
    EXPECT_TRUE(parser
                    .Feed(bytes.substr(at, step),
                          [&](const SseEvent& event) {
                            events.push_back(event);
                            return true;
                          })
                    .ok());
  }
  return events;
}

TEST(Sse, ReadsBackWhatItWroteHoweverItIsCut) {
  const std::vector<SseEvent> events = {{"1", "log", "hello"},
                                        {"2", "log", ""},
                                        {"3", "", "two\nlines\n"},
                                        {"4", "log", " leading space: and colon"},
                                        {"5", "log", "{\"a\":\"\xC3\xA9\"}"}};
  std::string wire;
  for (const auto& event : events) wire += FormatSse(event) + SseComment("still here");
  for (const size_t step : {1, 2, 3, 7, 1000}) EXPECT_EQ(ParseBy(step, wire), events) << step;
}

TEST(Sse, LetsNoIdOrNameForgeAField) {
  const auto events = ParseBy(100, FormatSse({"1\ndata: forged", "e\r\nid: 9", "x\rdata: y"}));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].id, "1data: forged");
  EXPECT_EQ(events[0].event, "eid: 9");
  EXPECT_EQ(events[0].data, "x\ndata: y");
}

TEST(Sse, FollowsTheStandardsCornerCases) {
  for (const size_t step : {1, 100}) {
    EXPECT_EQ(ParseBy(step,
                      "\xEF\xBB\xBF"
                      "data: bom\n\n"),
              (std::vector<SseEvent>{{"", "", "bom"}}));
    EXPECT_EQ(ParseBy(step, "data:a\r\ndata: b\rdata\n\r\n"),
              (std::vector<SseEvent>{{"", "", "a\nb\n"}}));
    EXPECT_EQ(ParseBy(step, "id: 7\n\ndata: x\n\nevent: e\n\ndata: y\n\n"),
              (std::vector<SseEvent>{{"7", "", "x"}, {"7", "", "y"}}));
    EXPECT_EQ(ParseBy(step, "data: unfinished\n"), (std::vector<SseEvent>{}));
    EXPECT_EQ(ParseBy(step, std::string_view("id: a\0b\ndata: x\n\n", 17)),
              (std::vector<SseEvent>{{"", "", "x"}}));
  }
  SseParser parser;
  ASSERT_TRUE(parser.Feed("retry: 250\nretry: x1\nid: 3\n\n", [](auto&) { return true; }).ok());
  EXPECT_EQ(parser.retry_ms(), 250);
  EXPECT_EQ(parser.last_event_id(), "3");
}

TEST(Sse, StopsWhenTheReaderHasSeenEnough) {
  SseParser parser;
  int seen = 0;
  ASSERT_TRUE(parser
                  .Feed("data: 1\n\ndata: 2\n\n",
                        [&](auto&) {
                          ++seen;
                          return false;
                        })
                  .ok());
  EXPECT_EQ(seen, 1);
}

TEST(Sse, RefusesAnEventWithoutEnd) {
  SseParser parser;
  const std::string piece(1 << 20, 'x');
  Status status = parser.Feed("data: ", [](auto&) { return true; });
  for (int i = 0; i < 20 && status.ok(); ++i) {
    status = parser.Feed(piece, [](auto&) { return true; });
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace athanor
