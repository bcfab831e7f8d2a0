#include "door/cloudwatch/log_events.h"

#include <gtest/gtest.h>

#include <random>

#include "door/cloudwatch/log_streams.h"

namespace athanor {
namespace {

LogEntry Entry(uint64_t index, std::string bytes, LogStream stream = LogStream::kStdout,
               uint32_t attempt = 1) {
  LogEntry entry;
  entry.attempt = attempt;
  entry.stream = stream;
  entry.wall_ms = 1000 + static_cast<int64_t>(index);
  entry.bytes = std::move(bytes);
  entry.after = LogCursor{index + 1};
  return entry;
}

std::vector<std::string> Texts(const std::vector<LogEvent>& events) {
  std::vector<std::string> texts;
  for (const auto& event : events) texts.push_back(event.text);
  return texts;
}

using Strings = std::vector<std::string>;

TEST(LogEvents, OneALineInTheOrderInWhichTheyEnd) {
  LogEvents made;
  std::vector<LogEvent> events;
  made.Add(Entry(0, "one\n\nha"), events);
  made.Add(Entry(1, "err\n", LogStream::kStderr), events);
  made.Add(Entry(2, "lf\nopen"), events);
  EXPECT_EQ(Texts(events), (Strings{"one", "", "err", "half"}));
  EXPECT_EQ(events[0].time_ms, 1000);
  EXPECT_EQ(events[3].time_ms, 1002) << "when it was complete";
  EXPECT_EQ(events[1].number, 1u);
  made.Finish(events);
  EXPECT_EQ(events.back().text, "open");
  EXPECT_EQ(events.back().entry, 2u);
  EXPECT_EQ(events.back().number, 1u);
}

TEST(LogEvents, AProgressBarIsItsLastState) {
  LogEvents made;
  std::vector<LogEvent> events;
  made.Add(Entry(0, "\r 10%"), events);
  made.Add(Entry(1, "\r 50%\r"), events);
  made.Add(Entry(2, " 90%"), events);
  EXPECT_EQ(made.Position().from, 2u) << "nothing before is needed any more";
  made.Add(Entry(3, "\r100%\r\nwindows\r\n"), events);
  made.Add(Entry(4, "gone\r     \rdone\n"), events);
  EXPECT_EQ(Texts(events), (Strings{"100%", "windows", "done"}));
}

TEST(LogEvents, AnotherAttemptEndsAnOpenLine) {
  LogEvents made;
  std::vector<LogEvent> events;
  made.Add(Entry(0, "cut off"), events);
  made.Add(Entry(1, "again\n", LogStream::kStdout, 2), events);
  EXPECT_EQ(Texts(events), (Strings{"cut off", "again"}));
}

TEST(LogEvents, TimesNeverGoBack) {
  LogEvents made;
  std::vector<LogEvent> events;
  auto late = Entry(0, "a\n");
  late.wall_ms = 5000;
  made.Add(late, events);
  made.Add(Entry(1, "b\n"), events);
  EXPECT_EQ(events[1].time_ms, 5000);
}

TEST(LogEvents, AVeryLongLineIsCutBetweenCharactersAndSaysSo) {
  LogEvents made;
  std::vector<LogEvent> events;
  uint64_t index = 0;
  for (; index < 6; ++index) {
    std::string text;
    while (text.size() < (64 << 10) - 1) text += "\u00e9";
    made.Add(Entry(index, text), events);
  }
  made.Add(Entry(index, "\n"), events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_LE(events[0].text.size(), kLongestEvent);
  const size_t note = events[0].text.find(" [...");
  ASSERT_NE(note, std::string::npos);
  EXPECT_EQ(note % 2, 0u);
}

TEST(LogEvents, OtherHostsLinesAreNotItsOwn) {
  LogEvents made(1);
  std::vector<LogEvent> events;
  made.Add(Entry(0, "theirs\n"), events);
  auto own = Entry(1, "mine\n");
  own.host = 1;
  made.Add(own, events);
  EXPECT_EQ(Texts(events), Strings{"mine"});
}

// Pieces of two streams and two attempts, cut anywhere, with bars, over several blocks.
std::vector<LogEntry> AnyLog(uint32_t seed, size_t entries) {
  std::mt19937 random(seed);
  std::vector<LogEntry> log;
  uint64_t index = 0;
  for (size_t i = 0; i < entries; ++i, index += random() % 50 == 0 ? 2 : 1) {
    std::string bytes;
    const size_t pieces = 1 + random() % 4;
    for (size_t p = 0; p < pieces; ++p) {
      bytes += "w" + std::to_string(random() % 100);
      static const char* const kEnds[] = {"", "\n", "\r", "\r\n", "\n\n", " "};
      bytes += kEnds[random() % 6];
    }
    const auto stream = random() % 3 == 0 ? LogStream::kStderr : LogStream::kStdout;
    log.push_back(Entry(index, bytes, stream, i < entries / 2 ? 1 : 2));
    if (random() % 20 == 0) log.back().wall_ms -= 500;
  }
  return log;
}

TEST(LogEvents, GoingOnFromAnyPositionMakesTheSameEvents) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const auto log = AnyLog(seed, 1400);
    LogEvents whole;
    std::vector<LogEvent> all;
    std::vector<LogPosition> positions;
    std::vector<size_t> made_so_far;
    for (const auto& entry : log) {
      whole.Add(entry, all);
      positions.push_back(whole.Position());
      made_so_far.push_back(all.size());
    }
    whole.Finish(all);
    for (size_t i = 0; i < positions.size(); i += 7 + i % 17) {
      const auto& position = positions[i];
      ASSERT_TRUE(LogPosition::Parse(position.ToString()) == position) << position.ToString();
      for (const uint64_t from : {position.from, FirstOfBlock(position.entry)}) {
        LogEvents again(0, position.floor_ms);
        std::vector<LogEvent> made;
        for (const auto& entry : log) {
          if (entry.after.entry > from) again.Add(entry, made);
        }
        again.Finish(made);
        std::erase_if(made, [&](const LogEvent& event) { return position.Passed(event); });
        ASSERT_EQ(made.size(), all.size() - made_so_far[i]) << seed << " " << position.ToString();
        for (size_t e = 0; e < made.size(); ++e) {
          const auto& want = all[made_so_far[i] + e];
          ASSERT_EQ(made[e].text, want.text) << seed << " " << position.ToString();
          ASSERT_EQ(made[e].time_ms, want.time_ms);
          ASSERT_EQ(made[e].entry, want.entry);
          ASSERT_EQ(made[e].number, want.number);
        }
      }
    }
  }
}

TEST(LogPosition, ReadsOnlyWhatItWrites) {
  EXPECT_TRUE(LogPosition::Parse("0-0-0-0"));
  EXPECT_TRUE(LogPosition::Parse("600-3-512-1700000000000"));
  for (const char* text : {"", "0-0-0", "0-0-0-0-0", "-1-0-0-0", "0-0-0--1", "01-0-0-0", "1-0-2-0",
                           "600-0-511-0", "a-0-0-0", "0-0-0-0 ", "99999999999999999999-0-0-0"}) {
    EXPECT_FALSE(LogPosition::Parse(text)) << text;
  }
}

TEST(StreamName, IsAsSageMakerNamesThem) {
  const StreamName name{"my-job", 0, 1700000000123};
  EXPECT_EQ(name.ToString(), "my-job/algo-1-1700000000123");
  const auto read = StreamName::Parse("my-job/algo-2-17");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->host, 1u);
  EXPECT_EQ(read->start_ms, 17);
  for (const char* text : {"", "/", "job", "job/algo-1", "job/algo-0-5", "job/algo-1-",
                           "job/algo--1-5", "/algo-1-5", "job/algo-1-5x", "job/beta-1-5"}) {
    EXPECT_FALSE(StreamName::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace athanor
