#include "base/text/ignore.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/exec/process.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

struct Row {
  const char* pattern;
  const char* path;  // a folder ends in '/'
  bool matches;
};

TEST(IgnorePattern, MatchesAsGitDocumentsIt) {
  constexpr Row kRows[] = {
      {"a", "a", true},           {"a", "x/a", true},          {"a", "a/b", false},
      {"/a", "a", true},          {"/a", "x/a", false},        {"a/", "a", false},
      {"a/", "a/", true},         {"a/", "x/a/", true},        {"a/b", "a/b", true},
      {"a/b", "x/a/b", false},    {"*.py", "x/y.py", true},    {"*.py", "y.pyc", false},
      {"a/*", "a/b", true},       {"a/*", "a/b/c", false},     {"**/a", "a", true},
      {"**/a", "x/y/a", true},    {"a/**", "a/b/c", true},     {"a/**", "a", false},
      {"a/**/b", "a/b", true},    {"a/**/b", "a/x/y/b", true}, {"a/**/b", "ab", false},
      {"a**b", "axxb", true},     {"x/a**b", "x/a/b", false},  {"ab**/c", "abx/y/c", true},
      {"?", "a", true},           {"a/?", "a/", false},        {"[a-c]x", "bx", true},
      {"[!a-c]x", "bx", false},   {"[^a-c]x", "dx", true},     {"[]]", "]", true},
      {"[[:digit:]]", "7", true}, {"[[:nope:]]", "7", false},  {"[a", "[a", false},
      {"\\!a", "!a", true},       {"\\#a", "#a", true},        {"a\\", "a\\", false},
      {"a\\ ", "a ", true},       {"a  ", "a", true},          {"a\\*", "a*", true},
      {"a\\*", "ab", false},      {"/", "a/", false},          {"***/a", "x/a", true},
      {"a/[/]b", "a//b", false},  {"[a-]", "-", true},         {"[\\]]", "]", true},
      {"**", "a/b", true},
  };
  for (const auto& row : kRows) {
    std::string path = row.path;
    const bool is_dir = EndsWith(path, "/");
    if (is_dir) path.pop_back();
    EXPECT_EQ(IgnorePattern(row.pattern).Matches(path, is_dir), row.matches)
        << row.pattern << " on " << row.path;
  }
}

TEST(IgnorePattern, TakesNoLongerForPatternsThatBacktrack) {
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*a";
  // With backtracking this would never end.
  EXPECT_FALSE(IgnorePattern(stars + "b").Matches(std::string(3000, 'a'), false));
  std::string folders = "/";
  for (int i = 0; i < 100; ++i) folders += "**/a/";
  std::string path = "a";
  for (int i = 0; i < 500; ++i) path += "/a";
  EXPECT_FALSE(IgnorePattern(folders + "b").Matches(path, false));
}

TEST(IgnoreRules, HigherLayersOverrideLowerOnes) {
  IgnoreRules rules;
  rules.AddDefaults();
  rules.Add(IgnoreRules::Layer::kGit, "", "*.bin\ndata/\n", ".gitignore");
  rules.Add(IgnoreRules::Layer::kGit, "deep", "*\n", "deep/.gitignore");
  rules.Add(IgnoreRules::Layer::kAthanor, "", "!model.bin\n!deep/keep\n", ".athanorignore");
  rules.Add(IgnoreRules::Layer::kExtra, "", "model.bin.old", "source.ignore");
  EXPECT_TRUE(rules.OnPath("x.bin", false).ignored);
  EXPECT_FALSE(rules.OnPath("model.bin", false).ignored);
  EXPECT_FALSE(rules.OnPath("deep/keep", false).ignored);
  EXPECT_TRUE(rules.OnPath("deep/other", false).ignored);
  EXPECT_TRUE(rules.OnPath("model.bin.old", false).ignored);
  EXPECT_TRUE(rules.OnPath("a/__pycache__/x.txt", false).ignored);
  EXPECT_TRUE(rules.OnPath(".git", true).ignored);
  EXPECT_FALSE(rules.OnPath("build/x", false).ignored);
}

TEST(IgnoreRules, SaysWhichLineDecided) {
  IgnoreRules rules;
  rules.Add(IgnoreRules::Layer::kGit, "", "# c\n\n*.pt\n", ".gitignore");
  const IgnoreVerdict verdict = rules.OnPath("a/model.pt", false);
  EXPECT_TRUE(verdict.ignored);
  EXPECT_EQ(verdict.source, ".gitignore");
  EXPECT_EQ(verdict.line, 3u);
  EXPECT_EQ(verdict.pattern, "*.pt");
}

TEST(IgnoreRules, WhatIsInAnIgnoredFolderStaysIgnored) {
  IgnoreRules rules;
  rules.Add(IgnoreRules::Layer::kGit, "", "out/\n!out/keep\n", ".gitignore");
  EXPECT_TRUE(rules.OnPath("out/keep", false).ignored);
}

TEST(IgnoreRules, RulesFromAboveTheSourceApply) {
  IgnoreRules rules("examples/cifar");
  rules.Add(IgnoreRules::Layer::kGit, "", "/examples/cifar/out\n*.log\n", "/repo/.gitignore");
  EXPECT_TRUE(rules.OnPath("out", true).ignored);
  EXPECT_TRUE(rules.OnPath("a/b.log", false).ignored);
  EXPECT_FALSE(rules.OnPath("b/out", true).ignored);
}

// Random trees and random ignore files, judged by git itself.
class RandomTree {
 public:
  explicit RandomTree(uint32_t seed) : random_(seed) {}

  size_t Below(size_t limit) { return random_() % limit; }

  std::string Name() {
    constexpr const char* kNames[] = {"a",   "b",   "ab", "abc",      "a.b", "x-y", "!a", "#b",
                                      "a b", "[a]", "a]", "\xC3\xA9", "B",   "0",   "a*", "__c"};
    return kNames[Below(std::size(kNames))];
  }

  std::string Pattern() {
    constexpr const char* kParts[] = {
        "a",   "b",     "ab",  "*",         "**",           "/",  "?",   "[a-c]",       "[!a]",
        ".b",  "/**",   "**/", "/**/",      "\\",           "[",  "]",   "[[:alpha:]]", " ",
        "!",   "#",     "\\*", "[]a]",      "[^[:upper:]]", "a*", "x-y", "-",           "\xC3\xA9",
        "[a-", "[\\]]", "***", "[[:bad:]]", "\\/"};
    std::string pattern = Below(5) == 0 ? "!" : "";
    if (Below(4) == 0) pattern += "/";
    for (size_t i = 0, n = 1 + Below(4); i < n; ++i) pattern += kParts[Below(std::size(kParts))];
    if (Below(4) == 0) pattern += "/";
    return pattern;
  }

  std::string IgnoreFile() {
    std::string text;
    for (size_t i = 0, n = 1 + Below(4); i < n; ++i) text += Pattern() + (Below(9) ? "\n" : "\r\n");
    return text;
  }

 private:
  std::mt19937 random_;
};

TEST(IgnoreRules, AgreesWithGitOnRandomTrees) {
  if (!RunCommand({"git", "--version"})) GTEST_SKIP() << "no git";
  const std::string top = testing::TempDir() + "athanor-ignore-" + RandomHex(6);
  size_t ignored = 0;
  size_t asked = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomTree tree(seed);
    const std::string root = top + "/" + std::to_string(seed);
    ASSERT_TRUE(MakeDirs(root).ok());
    ASSERT_TRUE(RunCommand({"git", "init", "-q", root})->ok());
    IgnoreRules rules;
    std::vector<std::string> folders{""};
    std::set<std::string> files;
    for (int i = 0; i < 8; ++i) {
      const std::string& parent = folders[tree.Below(folders.size())];
      const std::string name = parent + tree.Name() + "/";
      if (std::find(folders.begin(), folders.end(), name) == folders.end()) folders.push_back(name);
    }
    for (const auto& folder : folders) {
      ASSERT_TRUE(MakeDirs(root + "/" + folder).ok());
      for (int i = 0; i < 4; ++i) {
        const std::string name = folder + tree.Name();
        if (std::find(folders.begin(), folders.end(), name + "/") != folders.end()) continue;
        ASSERT_TRUE(ReplaceFile(root + "/" + name, "x").ok());
        files.insert(name);
      }
      if (!folder.empty() && tree.Below(3) != 0) continue;
      const std::string text = tree.IgnoreFile();
      ASSERT_TRUE(ReplaceFile(root + "/" + folder + ".gitignore", text).ok());
      rules.Add(IgnoreRules::Layer::kGit, folder.empty() ? "" : folder.substr(0, folder.size() - 1),
                text, folder + ".gitignore");
    }
    CommandOptions options;
    options.cwd = root;
    for (const auto& file : files) options.stdin_text += file + '\0';
    const auto said = RunCommand(
        {"git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin"},
        options);
    ASSERT_TRUE(said.has_value());
    std::set<std::string> by_git;
    for (const auto& name : Split(said->output, '\0')) {
      if (!name.empty()) by_git.insert(name);
    }
    for (const auto& file : files) {
      const IgnoreVerdict verdict = rules.OnPath(file, false);
      EXPECT_EQ(verdict.ignored, by_git.contains(file))
          << "seed " << seed << " file '" << file << "' by " << verdict.source << ":"
          << verdict.line << " '" << verdict.pattern << "'";
      ignored += verdict.ignored ? 1 : 0;
      ++asked;
    }
  }
  (void)RemoveTree(top).ok();
  // The trees must have something to disagree about.
  EXPECT_GT(ignored, asked / 10);
  EXPECT_LT(ignored, asked * 9 / 10);
}

}  // namespace
}  // namespace athanor
