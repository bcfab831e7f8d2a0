#include "submit/yaml.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace athanor {
namespace {

Error Refused(const std::string& text) {
  auto parsed = ParseYaml(text, "job.yaml");
  EXPECT_FALSE(parsed.has_value()) << text.substr(0, 200);
  return parsed ? Error{} : parsed.error();
}

YamlNode Parsed(const std::string& text) {
  auto parsed = ParseYaml(text, "job.yaml");
  EXPECT_TRUE(parsed.has_value()) << text << ": " << (parsed ? "" : parsed.error().why);
  return parsed ? *parsed : YamlNode{};
}

TEST(Yaml, KeepsOrderTextQuotesAndPlaces) {
  const YamlNode root = Parsed("b: 1e-4\na:\n  - 'x'\n  - é: {z: ~}\n");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.entries[0].value.text, "1e-4");
  EXPECT_FALSE(root.entries[0].value.quoted);
  const YamlNode& list = root.entries[1].value;
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_TRUE(list.items[0].quoted);
  EXPECT_EQ(list.items[0].mark, (YamlMark{3, 5}));
  // Columns count characters: é is one.
  EXPECT_EQ(list.items[1].entries[0].mark, (YamlMark{4, 5}));
  EXPECT_EQ(list.items[1].entries[0].value.entries[0].mark, (YamlMark{4, 9}));
  EXPECT_EQ(list.items[1].entries[0].value.entries[0].value.kind, YamlNode::Kind::kNull);
}

TEST(Yaml, ReadsJson) {
  const YamlNode root = Parsed(R"({"run": ["python3", "a.py"], "params": {"lr": 1e-3}})");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].value.items[1].text, "a.py");
  EXPECT_TRUE(root.entries[0].value.items[1].quoted);
}

TEST(Yaml, ReadsWindowsLinesAndAByteOrderMark) {
  const YamlNode root = Parsed("\xEF\xBB\xBFname: x\r\nrun: |\r\n  a\r\n  b\r\n");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "name");
  EXPECT_EQ(root.entries[1].value.text, "a\nb\n");
  EXPECT_EQ(root.entries[1].mark, (YamlMark{2, 1}));
}

TEST(Yaml, ExpandsAliasesInPlace) {
  const YamlNode root = Parsed("a: &x {k: 1}\nb: *x\n");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[1].value.entries[0].value.text, "1");
}

TEST(Yaml, TypesScalarsByItsOwnRules) {
  using enum ScalarKind;
  const std::pair<const char*, ScalarKind> table[] = {
      {"1e-4", kFloat},  {"1E+5", kFloat},     {"-0.5", kFloat},  {".5", kFloat},
      {"1.", kFloat},    {"0", kInt},          {"-12", kInt},     {"+3", kInt},
      {"007", kString},  {"1_000", kString},   {"0x1F", kString}, {"1.2.3", kString},
      {"e5", kString},   {"1e", kString},      {".", kString},    {".inf", kFloat},
      {"-inf", kFloat},  {"nan", kFloat},      {".NaN", kFloat},  {"-nan", kString},
      {"true", kBool},   {"False", kBool},     {"yes", kString},  {"no", kString},
      {"on", kString},   {"off", kString},     {"null", kNull},   {"~", kNull},
      {"", kNull},       {"nul", kString},     {"-", kString},    {"+", kString},
      {"1e5x", kString}, {"infinity", kString}};
  for (const auto& [text, kind] : table) EXPECT_EQ(ScalarKindOf(text), kind) << text;
  EXPECT_EQ(ScalarKindOf(YamlNode::Scalar("1", true)), kString);
}

struct Bad {
  std::string text;
  std::string where;
  std::string id;
  std::string part;  // of what, why or hint
};

TEST(Yaml, SaysWhereAndWhyATextIsRefused) {
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'h'; ++c) {
    laughs += std::string(1, c) + ": &" + c;
    laughs += " [";
    for (int i = 0; i < 10; ++i) laughs += std::string(i ? ", *" : "*") + static_cast<char>(c - 1);
    laughs += "]\n";
  }
  const std::string long_text = "a: &a " + std::string(400'000, 'x') + "\nb: [*a, *a, *a]\n";
  const Bad table[] = {
      {"name: a\nrun: b\nname: c\n", "job.yaml:3:1", "ATH-S0104",
       "first on line 1, again on line 3"},
      {"p: {a: 1, a: 2}\n", "job.yaml:1:11", "ATH-S0104", "'a' is given twice"},
      {"a: 1\n---\nb: 2\n", "job.yaml:2:1", "ATH-S0102", "more than one document"},
      {"a: &x 1\nb:\n  <<: *x\n", "job.yaml:3:3", "ATH-S0102", "merge keys"},
      {"source:\n\tdir: .\n", "job.yaml:2:1", "ATH-S0102", "tab"},
      {"a: [1, 2\nb: 3\n", "job.yaml:2:2", "ATH-S0102", "quotes"},
      {"a: *nope\n", "job.yaml:1:4", "ATH-S0102", "starts with '*' needs quotes"},
      {"a: &x [*x]\n", "job.yaml:1:8", "ATH-S0103", "refers to itself"},
      {"a: !!python/object:os.system x\n", "", "ATH-S0102", ""},
      {"a: !mine x\n", "job.yaml:1:4", "ATH-S0102", "tags are not used"},
      {"? [a, b]\n: c\n", "job.yaml:1:3", "ATH-S0102", "key must be a plain word"},
      {": c\n", "job.yaml:1:1", "ATH-S0102", "a key is missing"},
      {"a: \"x\\0y\"\n", "job.yaml:1:4", "ATH-S0101", "no text"},
      {std::string("a: b\0c\n", 7), "job.yaml:1:5", "ATH-S0101", "byte 0x00 at offset 4"},
      {"a: \xff\xfe\n", "job.yaml:1:4", "ATH-S0101", "not UTF-8"},
      {"a: \x1b[31m\n", "job.yaml:1:4", "ATH-S0101", "control character"},
      {"a: b\x04\nc: d\n", "job.yaml:1:5", "ATH-S0101", "control character"},
      {std::string(10 << 20, 'a'), "job.yaml", "ATH-S0101", "10 MiB; the limit is 1 MiB"},
      {std::string(10 << 20, '['), "job.yaml", "ATH-S0101", "too large"},
      {std::string(1 << 20, '['), "job.yaml:1:513", "ATH-S0103", "brackets are open"},
      {"a: " + std::string(40, '[') + std::string(40, ']'), "job.yaml:1:35", "ATH-S0103",
       "more than 32 levels"},
      {laughs, "", "ATH-S0103", "after expanding aliases"},
      {long_text, "", "ATH-S0103", "too many values"},
  };
  for (const auto& row : table) {
    const Error error = Refused(row.text);
    const std::string shown = row.text.substr(0, 60);
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << shown;
    EXPECT_EQ(error.id, row.id) << shown;
    if (!row.where.empty()) {
      EXPECT_EQ(error.where, row.where) << shown;
    }
    const std::string all = error.what + "\n" + error.why + "\n" + error.hint;
    EXPECT_NE(all.find(row.part), std::string::npos) << shown << " gave\n" << all;
    EXPECT_FALSE(error.hint.empty()) << shown;
    EXPECT_FALSE(error.why.empty()) << shown;
  }
}

TEST(Yaml, RefusesDeepBlocksWithoutRecursingThroughThem) {
  std::string dashes;
  for (int i = 0; i < 300'000; ++i) dashes += "- ";
  EXPECT_EQ(Refused(dashes).id, "ATH-S0103");
  std::string keys;
  for (int i = 0; i < 300'000; ++i) keys += "? ";
  EXPECT_FALSE(ParseYaml(keys, "job.yaml").has_value());
  std::string steps;
  for (int i = 0; i < 200; ++i) steps += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(Refused(steps).id, "ATH-S0103");
}

TEST(Yaml, TakesAnEmptyTextForNothing) {
  EXPECT_EQ(Parsed("").kind, YamlNode::Kind::kNull);
  EXPECT_EQ(Parsed("# only a comment\n").kind, YamlNode::Kind::kNull);
}

TEST(Yaml, CountsNodesUpToTheLimit) {
  std::string list = "a: [";
  for (int i = 0; i < 9'990; ++i) list += "1,";
  EXPECT_TRUE(ParseYaml(list + "1]", "x").has_value());
  for (int i = 0; i < 20; ++i) list += "1,";
  EXPECT_FALSE(ParseYaml(list + "1]", "x").has_value());
}

}  // namespace
}  // namespace athanor
