#include "submit/own_venv.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "base/io/files.h"

namespace athanor {
namespace {

class OwnVenv : public testing::Test {
 protected:
  OwnVenv() : dir_(testing::TempDir() + "athanor-venv-" + RandomHex(6)) {
    EXPECT_TRUE(MakeDirs(dir_ + "/.venv/bin").ok());
    EXPECT_TRUE(ReplaceFile(dir_ + "/.venv/pyvenv.cfg", "home = /usr/bin\n").ok());
    EXPECT_TRUE(MakeDirs(dir_ + "/tools/bin").ok());
    tree_.dir = dir_;
  }
  ~OwnVenv() override { (void)RemoveTree(dir_).ok(); }

  std::vector<std::string> Rewritten(std::vector<std::string> command, bool shell = false) {
    JobSpec spec;
    spec.command = std::move(command);
    spec.shell = shell;
    used_ = UseOwnVenvs(spec, tree_);
    return spec.command;
  }

  using Words = std::vector<std::string>;
  std::string dir_;
  SourceTree tree_;
  Words used_;
};

TEST_F(OwnVenv, AProgramOfItRunsFromItsPlace) {
  EXPECT_EQ(Rewritten({".venv/bin/python", "train.py"}),
            (Words{dir_ + "/.venv/bin/python", "train.py"}));
  EXPECT_EQ(used_, Words{".venv"});
  EXPECT_EQ(Rewritten({"./.venv/bin/torchrun", "train.py"})[0], dir_ + "/.venv/bin/torchrun");
  EXPECT_EQ(Rewritten({".venv/bin/python -m x"}, true)[0], dir_ + "/.venv/bin/python -m x");
  EXPECT_EQ(Rewritten({"bash", "-c", ". .venv/bin/activate && python train.py"})[2],
            ". " + dir_ + "/.venv/bin/activate && python train.py");
}

TEST_F(OwnVenv, OtherPathsStay) {
  const Words command = {"tools/bin/python", "--out=.venv/x", "/usr/bin/python",
                         "../.venv/bin/python", ".venv"};
  EXPECT_EQ(Rewritten(command), command);
  EXPECT_TRUE(used_.empty());
}

TEST_F(OwnVenv, OneThatIsPackagedIsUsedAsPackaged) {
  BundleEntry entry;
  entry.path = ".venv/pyvenv.cfg";
  tree_.manifest.entries.push_back(entry);
  EXPECT_EQ(Rewritten({".venv/bin/python"})[0], ".venv/bin/python");
}

}  // namespace
}  // namespace athanor
