#include <gtest/gtest.h>

#include "base/text/text.h"
#include "cli/replay_command.h"

namespace athanor {
namespace {

const ChannelPath kChannels = [](std::string_view name) {
  return std::optional("/data/" + std::string(name));
};

JobSpec Argv(std::vector<std::string> command) {
  JobSpec spec;
  spec.command = std::move(command);
  spec.params = {{"lr", "0.5 or so", Param::Kind::kString}};
  spec.data = {{"train", "/data/train", "file"}};
  return spec;
}

JobSpec Line(std::string text) {
  auto spec = Argv({std::move(text)});
  spec.shell = true;
  return spec;
}

std::string Replayed(const JobSpec& spec, const ReplayRequest& request = {"/c", {}, false}) {
  auto argv = ReplayCommand(spec, request, kChannels);
  return argv ? Join(*argv, "|") : "refused: " + argv.error().id;
}

TEST(ReplayCommand, KeepsInterpreterOptionsScriptAndArguments) {
  EXPECT_EQ(Replayed(Argv({"python3.11", "-u", "-X", "dev", "train.py", "--lr", "${lr}"})),
            "python3.11|-u|-X|dev|-m|athanor.replay|/c|train.py|--lr|0.5 or so");
  EXPECT_EQ(Replayed(Argv({"/env/bin/python", "a/b.py", "-m", "x"})),
            "/env/bin/python|-m|athanor.replay|/c|a/b.py|-m|x");
}

TEST(ReplayCommand, PassesStepAndDebugger) {
  EXPECT_EQ(Replayed(Argv({"python", "t.py"}), {"/c d", 7, true}),
            "python|-m|athanor.replay|--pdb|--step|7|/c d|t.py");
}

TEST(ReplayCommand, AModuleStaysAModule) {
  EXPECT_EQ(Replayed(Argv({"python3", "-m", "pkg.train", "--x"})),
            "python3|-m|athanor.replay|--module|/c|pkg.train|--x");
}

TEST(ReplayCommand, OfALauncherOnlyTheScriptRuns) {
  EXPECT_EQ(Replayed(Argv({"torchrun", "--nproc-per-node", "2", "train.py", "--x"})),
            "python3|-m|athanor.replay|/c|train.py|--x");
}

TEST(ReplayCommand, AShellLineStaysOneAndItsValuesStayQuoted) {
  EXPECT_EQ(Replayed(Line("A=1 python3 train.py --lr ${lr} --data ${channel.train} $HOME"),
                     {"/it's", {}, false}),
            "/bin/sh|-c|A=1 python3 -m athanor.replay '/it'\\''s' train.py --lr '0.5 or so' "
            "--data /data/train $HOME");
}

TEST(ReplayCommand, RefusesWhatIsNoPythonScript) {
  EXPECT_EQ(Replayed(Argv({"bash", "train.sh"})), "refused: ATH-C0040");
  EXPECT_EQ(Replayed(Argv({"python3", "-c", "print(1)"})), "refused: ATH-C0040");
  EXPECT_EQ(Replayed(Line("cd x && python3 train.py")), "refused: ATH-C0040");
  EXPECT_EQ(Replayed(Argv({})), "refused: ATH-C0040");
}

}  // namespace
}  // namespace athanor
