#include "run/isolate/links.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "run/isolate/forwarder.h"
#include "run/isolate/route_socket.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

sockaddr_in At(const std::string& address, uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  return at;
}

// A server with any free port; its port is set.
UniqueFd ListenOn(const std::string& address, uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto at = At(address, 0);
  socklen_t size = sizeof at;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd.get(), 8) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return UniqueFd();
  }
  *port = ntohs(at.sin_port);
  return fd;
}

UniqueFd ConnectTo(const std::string& address, uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto at = At(address, port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    return UniqueFd();
  return fd;
}

std::string ReadToEnd(int fd) {
  std::string text;
  char bytes[65536];
  for (ssize_t n; (n = ::read(fd, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(n));
  return text;
}

// Sends back what it gets until the end, one connection after the other.
std::thread Echo(int listener, int connections) {
  return std::thread([listener, connections] {
    for (int i = 0; i < connections; ++i) {
      const UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      const auto text = ReadToEnd(fd.get());
      for (size_t at = 0; at < text.size();) {
        const auto n = ::write(fd.get(), text.data() + at, text.size() - at);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
    }
  });
}

std::string Echoed(int fd, const std::string& text) {
  std::string back;
  std::thread reader([&] { back = ReadToEnd(fd); });
  for (size_t at = 0; at < text.size();) {
    const auto n = ::write(fd, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  ::shutdown(fd, SHUT_WR);
  reader.join();
  return back;
}

bool Here(const AttemptId& attempt) { return AddressesOfHosts(attempt, 1).has_value(); }

class Links : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto tried = JoinHosts(AttemptId::New(), 0, 1);
    if (!tried) GTEST_SKIP() << "no right or no way to make networks: " << tried.error().what;
    EXPECT_TRUE(LeaveHosts(AttemptId::New(), 0).ok());
  }
  void TearDown() override {
    for (uint32_t host = 0; host < 3; ++host) EXPECT_TRUE(LeaveHosts(attempt_, host).ok());
    EXPECT_FALSE(Here(attempt_));
  }
  const AttemptId attempt_ = AttemptId::New();
};

TEST_F(Links, TheHostsReachEachOtherAndThisMachineReachesThem) {
  auto first = JoinHosts(attempt_, 0, 2);
  auto second = JoinHosts(attempt_, 1, 2);
  ASSERT_TRUE(first && second);
  ASSERT_EQ(first->addresses.size(), 2u);
  EXPECT_EQ(first->addresses, second->addresses);
  EXPECT_NE(first->addresses[0], first->addresses[1]);
  EXPECT_EQ(AddressesOfHosts(attempt_, 2).value(), first->addresses);
  uint16_t port = 0;
  UniqueFd listener;
  ASSERT_TRUE(InNetwork(first->space.get(), [&]() -> Status {
                listener = ListenOn(first->addresses[0], &port);
                return Ok();
              }).ok());
  ASSERT_TRUE(listener);
  auto echo = Echo(listener.get(), 2);
  UniqueFd from_second;
  ASSERT_TRUE(InNetwork(second->space.get(), [&]() -> Status {
                from_second = ConnectTo(first->addresses[0], port);
                return Ok();
              }).ok());
  ASSERT_TRUE(from_second);
  EXPECT_EQ(Echoed(from_second.get(), "from the second"), "from the second");
  const auto from_here = ConnectTo(first->addresses[0], port);
  ASSERT_TRUE(from_here);
  EXPECT_EQ(Echoed(from_here.get(), "from here"), "from here");
  echo.join();
}

TEST_F(Links, AHostHasItsOwnLoopback) {
  auto joined = JoinHosts(attempt_, 0, 2);
  ASSERT_TRUE(joined);
  uint16_t port = 0;
  const auto listener = ListenOn("127.0.0.1", &port);
  UniqueFd inside;
  ASSERT_TRUE(InNetwork(joined->space.get(), [&]() -> Status {
                inside = ConnectTo("127.0.0.1", port);
                return Ok();
              }).ok());
  EXPECT_FALSE(inside);
}

TEST_F(Links, AForwarderPassesConnectionsToThisMachinesLoopback) {
  auto joined = JoinHosts(attempt_, 0, 2);
  ASSERT_TRUE(joined);
  uint16_t port = 0;
  const auto listener = ListenOn("127.0.0.1", &port);
  auto forwarder = Forwarder::Start(joined->space.get(), {port});
  ASSERT_TRUE(forwarder);
  auto echo = Echo(listener.get(), 2);
  for (const auto& text : {std::string("short"), std::string(8 << 20, 'x')}) {
    UniqueFd inside;
    ASSERT_TRUE(InNetwork(joined->space.get(), [&]() -> Status {
                  inside = ConnectTo("127.0.0.1", port);
                  return Ok();
                }).ok());
    ASSERT_TRUE(inside);
    EXPECT_EQ(Echoed(inside.get(), text), text);
  }
  echo.join();
  // The next agent of the host listens there again.
  forwarder->reset();
  EXPECT_TRUE(Forwarder::Start(joined->space.get(), {port}));
}

TEST_F(Links, AServiceThatIsAwayEndsTheConnection) {
  auto joined = JoinHosts(attempt_, 0, 1);
  ASSERT_TRUE(joined);
  uint16_t port = 0;
  ListenOn("127.0.0.1", &port).reset();
  const auto forwarder = Forwarder::Start(joined->space.get(), {port});
  ASSERT_TRUE(forwarder);
  UniqueFd inside;
  ASSERT_TRUE(InNetwork(joined->space.get(), [&]() -> Status {
                inside = ConnectTo("127.0.0.1", port);
                return Ok();
              }).ok());
  ASSERT_TRUE(inside);
  EXPECT_EQ(ReadToEnd(inside.get()), "");
}

TEST_F(Links, TwoAttemptsHaveTheirOwnNets) {
  const auto other = AttemptId::New();
  auto mine = JoinHosts(attempt_, 0, 2);
  auto theirs = JoinHosts(other, 0, 2);
  ASSERT_TRUE(mine && theirs);
  EXPECT_NE(mine->addresses, theirs->addresses);
  EXPECT_TRUE(LeaveHosts(other, 0).ok());
  EXPECT_FALSE(Here(other));
  EXPECT_TRUE(Here(attempt_));
}

TEST_F(Links, AHostThatJoinsAgainHasItsAddressAgain) {
  auto stays = JoinHosts(attempt_, 1, 2);
  auto before = JoinHosts(attempt_, 0, 2);
  ASSERT_TRUE(stays && before);
  auto again = JoinHosts(attempt_, 0, 2);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->addresses, before->addresses);
  uint16_t port = 0;
  UniqueFd listener;
  ASSERT_TRUE(InNetwork(again->space.get(), [&]() -> Status {
                listener = ListenOn(again->addresses[0], &port);
                return Ok();
              }).ok());
  EXPECT_TRUE(ConnectTo(again->addresses[0], port));
}

// Planted bug: LeaveHosts removing only the bridge of its own attempt.
TEST_F(Links, WhatKilledAgentsLeftIsRemovedByTheNext) {
  const auto killed = AttemptId::New();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto joined = JoinHosts(killed, 0, 2);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(Here(killed));
  // The kernel removes the pair some time after the last process of the namespace.
  EXPECT_TRUE(test::Eventually([&] { return LeaveHosts(attempt_, 0).ok() && !Here(killed); }));
}

TEST(LinksWithoutRoot, SayThatTheyMayNot) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to become nobody";
  EXPECT_TRUE(test::AsNobody([] {
    const auto joined = JoinHosts(AttemptId::New(), 0, 2);
    return !joined && joined.error().code == ErrorCode::kDenied;
  }));
}

}  // namespace
}  // namespace athanor
