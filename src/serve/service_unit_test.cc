#include "serve/service_unit.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(ServiceUnit, TheUsualHomeHasThePlainName) {
  EXPECT_EQ(UnitName("/home/ann/athanor", "/home/ann/athanor"), "athanor.service");
  const auto other = UnitName("/data/one", "/home/ann/athanor");
  EXPECT_NE(other, "athanor.service");
  EXPECT_NE(other, UnitName("/data/two", "/home/ann/athanor"));
}

TEST(ServiceUnit, RunsTheServerOfTheHomeAndLeavesJobsAlone) {
  const auto text =
      UnitText({false, "/usr/bin/ath", "/home/ann/athanor", "/usr/bin"}, "athanor.service");
  EXPECT_NE(text.find("\nExecStart=\"/usr/bin/ath\" serve --service user/athanor.service\n"),
            std::string::npos);
  EXPECT_NE(text.find("\nEnvironment=\"ATHANOR_HOME=/home/ann/athanor\"\n"), std::string::npos);
  EXPECT_NE(text.find("\nKillMode=process\n"), std::string::npos);
  EXPECT_NE(text.find("\nRestart=on-failure\n"), std::string::npos);
  EXPECT_NE(text.find("\nWantedBy=default.target\n"), std::string::npos);
  EXPECT_NE(UnitText({true, "/usr/bin/ath", "/h", ""}, "a.service")
                .find("\nWantedBy=multi-user.target\n"),
            std::string::npos);
}

TEST(ServiceUnit, OddPathsAreQuoted) {
  const auto text = UnitText({false, "/opt/50% \"a\" $b/ath", "/h\\x", ""}, "athanor.service");
  EXPECT_NE(text.find("ExecStart=\"/opt/50%% \\\"a\\\" $$b/ath\" serve"), std::string::npos);
  EXPECT_NE(text.find("\"ATHANOR_HOME=/h\\\\x\""), std::string::npos);
}

TEST(ServiceUnit, CommandsNameTheManager) {
  EXPECT_EQ(SystemctlFor(MarkOf(false, "athanor.service"), "start"),
            "systemctl --user start athanor.service");
  EXPECT_EQ(SystemctlFor(MarkOf(true, "athanor.service"), "restart"),
            "systemctl restart athanor.service");
}

}  // namespace
}  // namespace athanor
