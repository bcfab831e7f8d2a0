#include "job/unread.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

JobRecord Record() {
  JobRecord record;
  record.spec.params = {{"lr", "0.9", Param::Kind::kNumber}, {"wd", "0.1", Param::Kind::kNumber}};
  record.attempts.emplace_back();
  record.attempts.back().exit = ExitInfo{};
  return record;
}

StoredEvent Note(uint32_t attempt, Cause cause) {
  StoredEvent event;
  event.attempt = attempt;
  event.cause = std::move(cause);
  return event;
}

TEST(Unread, IsReadBackFromTheNoteOfTheNewestAttemptThatEnded) {
  auto record = Record();
  const std::vector<StoredEvent> events = {Note(1, UnreadNote(record.spec, {"lr"}, true)),
                                           Note(1, {"completed", "", "", ""})};
  EXPECT_EQ(UnreadParams(record, events), (std::vector<UnreadParam>{{"lr", "0.9", true}}));
  EXPECT_TRUE(UnreadParams(record, {}).empty());
  record.attempts.emplace_back();
  record.attempts.back().number = 2;  // still running: what the one before did is known
  EXPECT_EQ(UnreadParams(record, events).size(), 1u);
  record.attempts.back().exit = ExitInfo{};  // it read everything
  EXPECT_TRUE(UnreadParams(record, events).empty());
}

TEST(Unread, SaysOnlyWhatIsKnown) {
  const auto record = Record();
  EXPECT_EQ(UnreadNote(record.spec, {"lr"}, true).text, "lr=0.9 was not read by the script");
  EXPECT_EQ(UnreadNote(record.spec, {"lr"}, true).hint, "ath run -P passes it as --lr");
  EXPECT_EQ(UnreadNote(record.spec, {"lr", "wd"}, true).text,
            "lr=0.9, wd=0.1 were not read by the script");
  const auto unsure = UnreadNote(record.spec, {"lr", "wd"}, false);
  EXPECT_EQ(unsure.text, "there is no sign that the script read lr=0.9, wd=0.1");
  EXPECT_EQ(UnreadParams(record, {Note(1, unsure)}),
            (std::vector<UnreadParam>{{"lr", "0.9", false}, {"wd", "0.1", false}}));
}

}  // namespace
}  // namespace athanor
