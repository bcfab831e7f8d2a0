#include "job/host_folder.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(HostFolder, EveryHostHasItsOwnAndTheFirstHasTheAttempts) {
  const auto attempt = AttemptId::New();
  EXPECT_EQ(HostFolderName(attempt, 0), attempt.ToString());
  EXPECT_EQ(HostFolderName(attempt, 12), attempt.ToString() + ".12");
  for (uint32_t host : {0u, 1u, 9u, 10u, 4'000'000'000u}) {
    EXPECT_EQ(ParseHostFolder(HostFolderName(attempt, host)), (HostFolder{attempt, host}));
  }
}

TEST(HostFolder, AnyOtherNameIsNone) {
  const auto id = AttemptId::New().ToString();
  for (const auto& name :
       {std::string(), std::string(".1"), std::string("starts"), id + ".", id + ".0", id + ".01",
        id + ".-1", id + ".1.2", id + ".x", id + ".99999999999", id + "/1", "../" + id}) {
    EXPECT_FALSE(ParseHostFolder(name)) << name;
  }
}

}  // namespace
}  // namespace athanor
