#include "link/tb_links.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

JobId Job(const char* digits) { return JobId::Parse(std::string(20, '0') + digits).value(); }

JobSpec Spec(const std::string& experiment, const std::string& name) {
  JobSpec spec;
  spec.experiment = experiment;
  spec.name = name;
  return spec;
}

TEST(TbLinks, LeadToTheJobsFilesAndGoWithIt) {
  TestDir home;
  const auto job = Job("000001");
  ASSERT_TRUE(MakeDirs(home / ("jobs/" + job.ToString() + "/events")).ok());
  const auto link = LinkEvents(home.path(), job, Spec("cifar", "base"));
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(*link, home / "tb/cifar/base");
  EXPECT_TRUE(ListDir(*link).has_value());
  EXPECT_EQ(LinkEvents(home.path(), job, Spec("cifar", "base")).value(), *link);
  UnlinkEvents(home.path(), job);
  EXPECT_FALSE(Exists(home / "tb/cifar"));
}

TEST(TbLinks, JobsOfOneNameDoNotHideEachOther) {
  TestDir home;
  const auto first = LinkEvents(home.path(), Job("000001"), Spec("", "base")).value();
  const auto second = LinkEvents(home.path(), Job("000002"), Spec("", "base")).value();
  EXPECT_EQ(first, home / "tb/default/base");
  EXPECT_EQ(second, home / "tb/default/base-000002");
  UnlinkEvents(home.path(), Job("000001"));
  EXPECT_EQ(ListDir(home / "tb/default").value(), std::vector<std::string>{"base-000002"});
}

TEST(TbLinks, ANameCannotLeaveTheFolder) {
  TestDir home;
  const auto link = LinkEvents(home.path(), Job("000001"), Spec("..", "../../x")).value();
  EXPECT_EQ(link, home / "tb/_../_.._.._x");
}

}  // namespace
}  // namespace athanor
