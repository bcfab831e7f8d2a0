#include "job/command.h"

#include <gtest/gtest.h>

#include "base/exec/process.h"

namespace athanor {
namespace {

JobSpec Spec(std::vector<std::string> command, bool shell) {
  JobSpec spec;
  spec.command = std::move(command);
  spec.shell = shell;
  spec.params = {{"lr", "0.1", Param::Kind::kNumber},
                 {"text", "it's $HOME; \"x\" `id` \\", Param::Kind::kString},
                 {"empty", "", Param::Kind::kString},
                 {"LR", "caps", Param::Kind::kString}};
  spec.data = {{"train", "/data", "file"}};
  return spec;
}

Result<std::vector<std::string>> Substituted(const JobSpec& spec) {
  return SubstituteCommand(spec, [](std::string_view name) -> std::optional<std::string> {
    if (name != "train") return std::nullopt;
    return "/opt/ml/input/data/train";
  });
}

TEST(Command, ReplacesParametersAndChannelsInWords) {
  const auto words = Substituted(Spec(
      {"p", "--lr=${lr}", "${channel.train}/x", "${text}", "${HOME}", "${LR}", "$${lr}"}, false));
  ASSERT_TRUE(words.has_value());
  const std::vector<std::string> expected = {
      "p",    "--lr=0.1", "/opt/ml/input/data/train/x", "it's $HOME; \"x\" `id` \\", "${HOME}",
      "caps", "${lr}"};
  EXPECT_EQ(*words, expected);
}

TEST(Command, SuggestsTheNearestNameForAnUnknownOne) {
  const auto typo = Substituted(Spec({"p ${channel.trian}"}, true));
  ASSERT_FALSE(typo.has_value());
  EXPECT_EQ(typo.error().id, "ATH-S0111");
  EXPECT_EQ(typo.error().hint, "did you mean ${channel.train}?");
  const auto unknown = Substituted(Spec({"p ${something}"}, true));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().hint, "-p something=VALUE, or $${something} to leave it to the shell");
}

TEST(Command, LeavesTheShellItsOwnForms) {
  for (const char* text :
       {"echo ${HOME} ${x:-y} ${#x} ${1} $x ${x%.*} ${", "${}", "$", "$$", "${a b}"}) {
    const auto words = Substituted(Spec({text}, true));
    ASSERT_TRUE(words.has_value()) << text;
    EXPECT_EQ((*words)[0], text);
  }
}

// The value must reach the program as one word, byte for byte, at every position.
TEST(Command, AShellSeesTheValueAsDataInEveryKindOfQuotes) {
  const std::string value = "it's $HOME; \"x\" `id` \\";
  const std::pair<const char*, std::string> table[] = {
      {"printf %s ${text}", value},
      {"printf %s \"${text}\"", value},
      {"printf %s '${text}'", value},
      {"printf %s a${text}b", "a" + value + "b"},
      {"printf %s \"$(printf %s \"${text}\")\"", value},
      {"printf %s \"$(printf %s ${text})\"", value},
      {"(printf %s ${text})", value},
      {"case a in a) printf %s ${text};; esac", value},
      {"# don't\nprintf %s ${text}", value},
      {"printf %s \\'${text}", "'" + value},
      {"printf '[%s]' ${empty} \"${empty}\"", "[][]"},
      {"x=1; printf %s $${x}", "1"},
  };
  for (const auto& [text, expected] : table) {
    const auto words = Substituted(Spec({text}, true));
    ASSERT_TRUE(words.has_value()) << text;
    const auto result = RunCommand({"sh", "-c", (*words)[0]});
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->output, expected) << (*words)[0];
  }
}

TEST(Command, RefusesToGuessInsideBackticksAndHereDocuments) {
  EXPECT_FALSE(Substituted(Spec({"echo `echo ${text}`"}, true)).has_value());
  EXPECT_FALSE(Substituted(Spec({"cat <<E\n${text}\nE\n"}, true)).has_value());
  EXPECT_TRUE(Substituted(Spec({"cat <<E\n${lr}\nE\n"}, true)).has_value());
  EXPECT_TRUE(Substituted(Spec({"echo `id` ${text}"}, true)).has_value());
}

JobSpec WithFlags(std::vector<std::string> command, bool shell) {
  auto spec = Spec(std::move(command), shell);
  spec.params = {
      {"lr", "0.1", Param::Kind::kNumber},    {"shift", "-1e-5", Param::Kind::kNumber},
      {"amp", "true", Param::Kind::kBool},    {"resume", "false", Param::Kind::kBool},
      {"none", "", Param::Kind::kNull},       {"layers", "[64,32.5,\"x y\"]", Param::Kind::kJson},
      {"text", "it's", Param::Kind::kString}, {"sagemaker_program", "x", Param::Kind::kString}};
  return spec;
}

JobSpec Passed(JobSpec spec) {
  EXPECT_TRUE(PassFlags(spec).ok());
  EXPECT_TRUE(PassFlags(spec).ok());  // once is enough
  return spec;
}

TEST(Command, PassesParametersAsArgparseReadsThem) {
  const std::vector<std::string> flags = {"--lr", "0.1",  "--shift=-1e-5", "--amp",  "--layers",
                                          "64",   "32.5", "x y",           "--text", "it's"};
  auto expected = flags;
  expected.insert(expected.begin(), {"python", "train.py"});
  EXPECT_EQ(*Substituted(Passed(WithFlags({"python", "train.py"}, false))), expected);
  expected = flags;
  expected.insert(expected.begin(), "p");
  expected.push_back("last");
  EXPECT_EQ(*Substituted(WithFlags({"p", "${args}", "last"}, false)), expected);
  EXPECT_EQ(
      Substituted(Passed(WithFlags({"python train.py\n"}, true)))->front(),
      "python train.py --lr 0.1 --shift=-1e-5 --amp --layers 64 32.5 'x y' --text 'it'\\''s'");
}

TEST(Command, DoesNotPassWhatTheCommandNamesItself) {
  auto spec = WithFlags({"p", "--rate=${lr}"}, false);
  spec.params.resize(2);
  EXPECT_EQ(*Substituted(Passed(spec)),
            (std::vector<std::string>{"p", "--rate=0.1", "--shift=-1e-5"}));
  EXPECT_TRUE(CommandPasses(Passed(spec), spec.params[1]));
  EXPECT_FALSE(CommandPasses(spec, spec.params[1]));
  spec.params = {{"args", "x", Param::Kind::kString}};  // a parameter of that name goes first
  spec.command = {"p", "${args}"};
  EXPECT_EQ(*Substituted(spec), (std::vector<std::string>{"p", "x"}));
}

TEST(Command, AsksWhichProgramOfAShellCommandGetsTheFlags) {
  for (const char* text :
       {"cd x && p", "p | tee log", "p > log", "a\nb", "x=$(id) p", "p # note"}) {
    auto unclear = WithFlags({text}, true);
    const auto words = PassFlags(unclear);
    ASSERT_FALSE(words.ok()) << text;
    EXPECT_NE(words.error().hint.find("${args}"), std::string::npos);
  }
  auto spec = WithFlags({"cd x && p ${args} | tee log"}, true);
  spec.params.resize(1);
  EXPECT_EQ(Substituted(spec)->front(), "cd x && p --lr 0.1 | tee log");
  for (const char* text : {"p \"${args}\"", "p '${args}'"}) {
    EXPECT_FALSE(Substituted(WithFlags({text}, true)).has_value()) << text;
  }
  EXPECT_FALSE(Substituted(WithFlags({"p", "--x=${args}"}, false)).has_value());
}

TEST(Command, IsShownAsItRuns) {
  EXPECT_EQ(CommandLine(Spec({"p", "--lr", "${lr}", "${channel.train}"}, false)),
            "p --lr 0.1 /opt/ml/input/data/train");
  EXPECT_EQ(CommandLine(Spec({"p ${lr} | tee x"}, true)), "p 0.1 | tee x");
  EXPECT_EQ(CommandLine(Spec({"p", "${nobody}"}, false)), "p '${nobody}'");
}

}  // namespace
}  // namespace athanor
