#include "door/page/session.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

const WallTime kNow{1'800'000'000'000};
const PageUser kAnn{"ann", Scope::kAdmin, ""};

TEST(PageSession, IsWhoItWasMadeFor) {
  const PageUser user{"token:lap top.é", Scope::kSubmit, "ab12"};
  EXPECT_EQ(ReadSession("key", MakeSession("key", user, kNow), kNow), user);
}

TEST(PageSession, EndsAfterItsTime) {
  const auto session = MakeSession("key", kAnn, kNow);
  EXPECT_TRUE(ReadSession("key", session, WallTime{kNow.ms + kSessionLife.count() - 1}));
  EXPECT_FALSE(ReadSession("key", session, WallTime{kNow.ms + kSessionLife.count()}));
}

TEST(PageSession, ANothersAndOneThatWasChangedAreNone) {
  const auto session = MakeSession("key", {"ann", Scope::kRead, ""}, kNow);
  EXPECT_FALSE(ReadSession("other", session, kNow));
  EXPECT_FALSE(ReadSession("key", "", kNow));
  EXPECT_FALSE(ReadSession("key", "....", kNow));
  for (size_t i = 0; i < session.size(); ++i) {
    auto changed = session;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(ReadSession("key", changed, kNow)) << i;
  }
}

TEST(PageLinks, AreGoodOnceAndSoon) {
  PageLinks links;
  const auto first = links.Make(kAnn, kNow);
  const auto late = links.Make(kAnn, kNow);
  EXPECT_EQ(links.Use(first, kNow), kAnn);
  EXPECT_FALSE(links.Use(first, kNow)) << "a link that was used";
  EXPECT_FALSE(links.Use(late, WallTime{kNow.ms + kLinkLife.count()})) << "a link that is old";
  EXPECT_FALSE(links.Use("", kNow));
}

TEST(Cookies, AreFoundByTheirWholeName) {
  EXPECT_EQ(CookieIn("a=1; athanor_x=v.w=; b=2", "athanor_x"), "v.w=");
  EXPECT_EQ(CookieIn("xathanor_x=1", "athanor_x"), "");
  EXPECT_EQ(CookieIn("", "a"), "");
  EXPECT_EQ(CookieIn(";;=;a", "a"), "");
}

}  // namespace
}  // namespace athanor
