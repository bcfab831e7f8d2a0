#include "door/aws/xml.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(Xml, WhatIsEscapedReadsBackAsItWas) {
  const std::string text = "<a href=\"x\">&amp;'\n\t\r]]>caf\xc3\xa9";
  const auto read = ParseXml(XmlElement("T", text));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->text, text);
  EXPECT_EQ(XmlEscape(std::string("\0", 1)), "&#x0;");
}

TEST(Xml, ReadsWhatClientsSend) {
  const auto read = ParseXml(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- c --><s3:Delete xmlns:s3='urn:x' a=\"1>2\">"
      "\n <s3:Object><s3:Key>a&#x2F;b<![CDATA[<&>]]></s3:Key></s3:Object><Quiet>true</Quiet>"
      "<Empty/></s3:Delete> ");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->name, "Delete");
  ASSERT_EQ(read->children.size(), 3u);
  EXPECT_EQ(read->children[0].TextOf("Key"), "a/b<&>");
  EXPECT_EQ(read->TextOf("Quiet"), "true");
  EXPECT_NE(read->Child("Empty"), nullptr);
  EXPECT_EQ(read->TextOf("None"), "");
}

// Planted bug: take a DOCTYPE, and a few bytes of entities become gigabytes.
TEST(Xml, RefusesWhatIsBrokenOrDangerous) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (const std::string& text :
       {std::string(), std::string("<"), std::string("<a"), std::string("<a>"),
        std::string("<a></b>"), std::string("<a/><b/>"), std::string("<a b></a>"),
        std::string("<a b=c></a>"), std::string("<a>&nope;</a>"), std::string("<a>&#xd800;</a>"),
        std::string("<a>&#;</a>"), std::string("<a>&#x110000;</a>"), std::string("text"),
        std::string("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"), deep}) {
    EXPECT_FALSE(ParseXml(text)) << text.substr(0, 50);
  }
}

}  // namespace
}  // namespace athanor
