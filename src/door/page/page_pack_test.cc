#include "door/page/page_pack.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(PagePack, GivesEachFileItsBytes) {
  const std::string text = "athanor page 1\nindex.html 5 0 aa\nui/assets/a.js 3 2 bb\n\nhelloabcgz";
  const auto pack = PagePack::Parse(text);
  ASSERT_TRUE(pack) << pack.error().why;
  EXPECT_EQ(pack->Find("index.html")->bytes, "hello");
  EXPECT_EQ(pack->Find("index.html")->gzip, "");
  EXPECT_EQ(pack->Find("ui/assets/a.js")->bytes, "abc");
  EXPECT_EQ(pack->Find("ui/assets/a.js")->gzip, "gz");
  EXPECT_EQ(pack->Find("ui/assets/a.js")->etag, "bb");
  EXPECT_EQ(pack->Find("ui"), nullptr);
}

TEST(PagePack, AProgramWithoutThePageHasNoFiles) { EXPECT_TRUE(PagePack::Parse("")->empty()); }

TEST(PagePack, WhatDoesNotAddUpIsRefused) {
  for (const char* text :
       {"x", "athanor page 1\na 1 0\n\nx", "athanor page 1\na 2 0 e\n\nx",
        "athanor page 1\na 1 1 e\n\nx", "athanor page 1\na 1 0 e\n\nxy",
        "athanor page 1\na -1 0 e\n\nx", "athanor page 1\na 1 18446744073709551615 e\n\nx"}) {
    EXPECT_FALSE(PagePack::Parse(text)) << text;
  }
}

TEST(PagePack, TheOneInThisProgramCanBeRead) {
  const auto& pack = PagePack::Embedded();
  EXPECT_TRUE(pack.empty() || pack.Find("index.html") != nullptr);
}

}  // namespace
}  // namespace athanor
