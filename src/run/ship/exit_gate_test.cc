#include "run/ship/exit_gate.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/event_writer.h"
#include "eventfile/proto.h"

namespace athanor {
namespace {

constexpr char kValue[] = "s3cret/+\"vAlue";

ExitGate Gate() { return ExitGate(*SecretPatterns::Make({{"KEY", kValue}})); }

TEST(ExitGate, AStringOfJsonIsFoundHoweverItIsEscaped) {
  std::string plain =
      R"({"run_id":"1","key":"s3cret\/+\"vAlue","value":"a s3cret/+\u0022vAlue b"})";
  ASSERT_TRUE(Gate().ScrubJson(plain));
  EXPECT_EQ(plain, R"({"run_id":"1","key":"___KEY___","value":"a ***KEY*** b"})");
  std::string other = R"({"value": 0.10000000000000001, "text": "\u00e9"})";
  const std::string before = other;
  EXPECT_FALSE(Gate().ScrubJson(other));
  EXPECT_EQ(other, before);  // byte for byte
}

TEST(ExitGate, WordsOfTheProtocolStay) {
  ExitGate gate(*SecretPatterns::Make({{"KEY", "metrics"}}));
  std::string body = R"({"metrics":[{"key":"metrics","value":1}]})";
  ASSERT_TRUE(gate.ScrubJson(body));
  EXPECT_EQ(body, R"({"metrics":[{"key":"___KEY___","value":1}]})");
}

TEST(ExitGate, WhatIsNoJsonIsScrubbedAsText) {
  std::string body = std::string(R"({"value": NaN, "key": ")") + "s3cret/+\\\"vAlue\"}";
  ASSERT_TRUE(Gate().ScrubJson(body));
  EXPECT_EQ(body, R"({"value": NaN, "key": "***KEY***"})");
}

TEST(ExitGate, AnEventStaysOneThatReadersWalk) {
  TestDir dir;
  auto writer = EventWriter::Create(dir.path(), 1, "x");
  ASSERT_TRUE(writer);
  const std::string tag = std::string("lr/") + kValue;
  ASSERT_TRUE(writer->Scalar(tag, 3, 2.5, 0.125));
  ASSERT_TRUE(writer->Flush());
  EventReader reader(UniqueFd(::open(writer->path().c_str(), O_RDONLY | O_CLOEXEC)));
  int values = 0;
  ASSERT_TRUE(reader.Poll([&](uint64_t, std::string_view payload) {
    std::string clean(payload);
    (void)Gate().ScrubMessage(clean);
    EXPECT_EQ(clean.find(kValue), std::string::npos);
    EventView event;
    ASSERT_TRUE(ReadEvent(clean, event));
    SummaryValue value;
    while (event.kind == EventView::Kind::kSummary && TakeValue(event.body, value)) {
      ++values;
      EXPECT_EQ(value.tag, "lr/***KEY***");
      EXPECT_EQ(event.step, 3);
      EXPECT_EQ(ScalarOf(value), 0.125);
    }
  }));
  EXPECT_EQ(values, 1);
}

TEST(ExitGate, NumbersThatFollowAStringStay) {
  std::string message, clean;
  proto::PutBytes(message, 1, kValue);
  proto::PutInt(message, 2, -7);
  proto::PutDouble(message, 3, 0.5);
  proto::PutFloat(message, 4, 0.25);
  proto::PutBytes(clean, 1, "***KEY***");
  proto::PutInt(clean, 2, -7);
  proto::PutDouble(clean, 3, 0.5);
  proto::PutFloat(clean, 4, 0.25);
  EXPECT_TRUE(Gate().ScrubMessage(message));
  EXPECT_EQ(message, clean);
}

TEST(ExitGate, TextFilesAreCleanAndOthersAreLeftAlone) {
  TestDir dir;
  const auto file = [&](const char* name, const std::string& bytes) {
    EXPECT_TRUE(WriteFileAtomic(dir / name, bytes, 0600));
    return UniqueFd(::open((dir / name).c_str(), O_RDWR | O_CLOEXEC));
  };
  // The value crosses the end of a piece, and so does a character.
  const std::string filler(65'530, 'x');
  const auto text = file("text", filler + kValue + "é");
  const auto copy = file("copy", "");
  EXPECT_EQ(*Gate().CopyText(text.get(), copy.get()), true);
  EXPECT_EQ(*ReadFile(dir / "copy"), filler + "***KEY***é");
  const auto binary = file("binary", std::string("\x80\x05", 2) + kValue);
  const auto none = file("none", "");
  EXPECT_EQ(*Gate().CopyText(binary.get(), none.get()), false);
  EXPECT_EQ(*ReadFile(dir / "none"), "");
}

TEST(ExitGate, EveryTextOfAReportIsClean) {
  std::vector<ReportFrame> frames;
  const std::string told = std::string("with ") + kValue;
  PointsFrame points;
  points.batch.items.push_back({1, {told, 1, 2, 0.5}});
  points.batch.items.push_back({2, {"loss", 1, 2, 0.5}});
  points.batch.items.push_back({3, {told, 2, 2, 0.5}});
  frames.emplace_back(points);
  const Cause cause{std::string("kind"), told, told, told};
  frames.emplace_back(NoteFrame{cause});
  frames.emplace_back(PrepareFailedFrame{cause});
  EndedFrame ended;
  ended.cause = cause;
  ended.exit.spawn_error = told;
  frames.emplace_back(ended);
  Output output;
  output.largest = told;
  output.left_out = {1, 1, {{told, 1, told}}};
  frames.emplace_back(UploadedFrame{{output}, cause, ""});
  frames.emplace_back(StartedFrame{0, {told}, 1});
  Firing firing;
  firing.metric = firing.advice = told;
  frames.emplace_back(FiringFrame{firing});
  auto gate = Gate();
  gate.ScrubFrames(frames);
  EXPECT_EQ(EncodeReport(frames).find("s3cret"), std::string::npos);
  const auto& items = std::get<PointsFrame>(frames[0]).batch.items;
  EXPECT_EQ(items[0].point.name, "with ***KEY***");
  EXPECT_EQ(items[1].point.name, "loss");
  EXPECT_EQ(items[2].point.name, "with ***KEY***");
}

}  // namespace
}  // namespace athanor
