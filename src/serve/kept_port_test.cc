#include "serve/kept_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

TEST(KeptPort, IsNoneBeforeOneIsKept) {
  TestDir dir;
  EXPECT_FALSE(KeptPort(dir.path()));
}

TEST(KeptPort, ComesBack) {
  TestDir dir;
  ASSERT_TRUE(KeepPort(dir.path(), 7123).ok());
  EXPECT_EQ(KeptPort(dir.path()), 7123);
  ASSERT_TRUE(KeepPort(dir.path(), 7456).ok());
  EXPECT_EQ(KeptPort(dir.path()), 7456);
}

TEST(KeptPort, IsNoneWhenTheFileHoldsSomethingElse) {
  TestDir dir;
  for (const char* text : {"", "port", "0", "65536", "7070x", "-1"}) {
    ASSERT_TRUE(ReplaceFile(dir.path() + "/port", text).ok());
    EXPECT_FALSE(KeptPort(dir.path())) << text;
  }
}

TEST(PortsInsteadOf, AreManyAndDifferentAndEndWithAny) {
  auto ports = PortsInsteadOf(7070, "/home/ann/.local/share/athanor");
  ASSERT_GT(ports.size(), 50u);
  EXPECT_EQ(ports.back(), 0);
  ports.pop_back();
  EXPECT_EQ(std::set<uint16_t>(ports.begin(), ports.end()).size(), ports.size());
  for (const auto port : ports) {
    EXPECT_GT(port, 7070);
    EXPECT_LT(port, 32'768);  // the system's own begin there
  }
}

TEST(PortsInsteadOf, LeaveOutTheOneThatIsTaken) {
  const auto first = PortsInsteadOf(7070, "/a").front();
  const auto ports = PortsInsteadOf(first, "/a");
  EXPECT_EQ(std::count(ports.begin(), ports.end(), first), 0);
}

TEST(PortsInsteadOf, DifferBetweenHomes) {
  EXPECT_NE(PortsInsteadOf(7070, "/home/ann").front(), PortsInsteadOf(7070, "/home/bob").front());
}

// Planted bug: forget the port that was taken instead.
TEST(ListenAtOwnPort, MovesOnceAndStaysThere) {
  TestDir dir;
  uint16_t taken = 7071;
  const auto listen = [&](uint16_t port) -> Result<uint16_t> {
    if (port == taken) return Fail(ErrorCode::kConflict, "taken");
    return port == 0 ? uint16_t{40'000} : port;
  };
  const auto moved = ListenAtOwnPort(dir.path(), "a.port", 7071, listen).value();
  EXPECT_EQ(moved.instead_of, 7071);
  EXPECT_FALSE(moved.was_kept);
  taken = 1;
  const auto again = ListenAtOwnPort(dir.path(), "a.port", 7071, listen).value();
  EXPECT_EQ(again.port, moved.port);
  EXPECT_FALSE(again.instead_of);
  EXPECT_EQ(ListenAtOwnPort(dir.path(), "b.port", 0, listen)->port, 40'000);
  EXPECT_EQ(ListenAtOwnPort(dir.path(), "b.port", 0, listen)->port, 40'000);
  EXPECT_EQ(KeptPort(dir.path(), "b.port"), 40'000);
}

}  // namespace
}  // namespace athanor
