#include "eventfile/media.h"

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "eventfile/event_writer.h"
#include "eventfile/plugins.h"

namespace athanor {
namespace {

constexpr double kWall = 1.7e9;

std::vector<std::string> Named(const std::vector<MediaSeries>& all) {
  std::vector<std::string> names;
  for (const auto& series : all) {
    names.push_back(series.kind + " " + series.name + " " + std::to_string(series.count) + " " +
                    std::to_string(series.last_step));
  }
  return names;
}

TEST(MediaBook, FindsWhatIsNoScalarAndGoesOnAsFilesGrow) {
  const TestDir dir;
  auto writer = EventWriter::Create(dir.path(), kWall, "a").value();
  ASSERT_TRUE(writer.Scalar("loss", 1, kWall, 0.5).ok());
  ASSERT_TRUE(writer.Text("note", 1, kWall, {{"hello"}}).ok());
  ASSERT_TRUE(writer.Flush().ok());
  MediaBook book;
  EXPECT_EQ(Named(book.List(dir.path()).value()), std::vector<std::string>{"text note 1 1"});

  auto second = EventWriter::Create(dir / "val", kWall, "b").value();
  ASSERT_TRUE(second.Histogram("w", 7, kWall, {{{0, 1, 5}}}).ok());
  ASSERT_TRUE(second.Flush().ok());
  ASSERT_TRUE(writer.Text("note", 2, kWall + 1, {{"again"}}).ok());
  ASSERT_TRUE(writer.Flush().ok());
  EXPECT_EQ(Named(book.List(dir.path()).value()),
            (std::vector<std::string>{"histogram val/w 1 7", "text note 2 2"}));
}

TEST(MediaBook, GivesTheBytesOfAnItemByItsKey) {
  const TestDir dir;
  auto writer = EventWriter::Create(dir.path(), kWall, "a").value();
  for (int step = 0; step < 100; ++step) {
    ASSERT_TRUE(writer.Text("note", step, kWall + step, {{"at " + std::to_string(step)}}).ok());
  }
  ASSERT_TRUE(writer.Flush().ok());
  MediaBook book;
  const auto items = book.Items(dir.path(), "text", "note", 5).value();
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items.front().step, 0);
  EXPECT_EQ(items.back().step, 99);
  EXPECT_EQ(items.back().wall_ms, static_cast<int64_t>((kWall + 99) * 1000));
  MediaBook other;  // a key outlives the book that gave it
  const auto record = other.Read(dir.path(), items.back().key).value();
  EventView event;
  SummaryValue value;
  ASSERT_TRUE(record.Value(event, value));
  EXPECT_EQ(ReadText(value)->texts, std::vector<std::string>{"at 99"});
}

TEST(MediaBook, KeysThatNameNoRecordFindNothing) {
  const TestDir dir;
  auto writer = EventWriter::Create(dir.path(), kWall, "a").value();
  ASSERT_TRUE(writer.Text("note", 1, kWall, {{"hello"}}).ok());
  ASSERT_TRUE(writer.Flush().ok());
  MediaBook book;
  const auto key = book.Items(dir.path(), "text", "note", 1)->front().key;
  const auto hash = key.substr(0, key.find('-'));
  for (const std::string& bad :
       {hash + "-1-0", hash + "-99999999999-0", hash + "--1-0", std::string("x-0-0"),
        std::string(""), std::string("../etc-0-0")}) {
    EXPECT_EQ(book.Read(dir.path(), bad).error().code, ErrorCode::kNotFound) << bad;
  }
  EXPECT_EQ(book.Items(dir.path(), "text", "other", 1).error().code, ErrorCode::kNotFound);
}

TEST(MediaBook, WhatWasAbandonedAndAFolderThatIsNotThereAreNothing) {
  const TestDir dir;
  auto writer = EventWriter::Create(dir / "abandoned/attempt-1-by-2", kWall, "a").value();
  ASSERT_TRUE(writer.Text("note", 1, kWall, {{"old"}}).ok());
  ASSERT_TRUE(writer.Flush().ok());
  MediaBook book;
  EXPECT_TRUE(book.List(dir.path())->empty());
  EXPECT_TRUE(book.List(dir / "none")->empty());
}

}  // namespace
}  // namespace athanor
