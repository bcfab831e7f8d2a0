#include "run/isolate/job_peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include "base/exec/sim_executor.h"
#include "base/io/fd.h"
#include "base/io/test_dir.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {
namespace {

// A child with a child of its own, which may hold a socket; both end with this object.
class Family {
 public:
  explicit Family(const char* name, int keeps = -1) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    parent_ = ::fork();
    if (parent_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also if the test ends early
      NameThisProcess(name);
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        NameThisProcess("script");
        ::pause();
        ::_exit(0);
      }
      if (keeps >= 0) ::close(keeps);
      (void)!::write(ends[1], &child, sizeof child);
      ::pause();
      ::_exit(0);
    }
    EXPECT_EQ(::read(ends[0], &child_, sizeof child_), static_cast<ssize_t>(sizeof child_));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Family() {
    ::kill(child_, SIGKILL);
    ::kill(parent_, SIGKILL);
    ::waitpid(parent_, nullptr, 0);
  }
  pid_t parent() const { return parent_; }
  pid_t child() const { return child_; }

 private:
  pid_t parent_ = 0;
  pid_t child_ = 0;
};

uint64_t InodeOf(int fd) {
  struct stat info {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_ino;
}

TEST(JobPeers, WhatDescendsFromASupervisorIsInside) {
  for (const char* name : {kSupervisorName, kWaitsForRoomName, kAgentName, kExecName}) {
    const Family job(name);
    EXPECT_TRUE(IsInsideJob(job.parent())) << name;
    EXPECT_TRUE(IsInsideJob(job.child())) << name;
  }
  const Family shell("bash");
  EXPECT_FALSE(IsInsideJob(shell.child()));
  EXPECT_FALSE(IsInsideJob(::getpid()));
}

TEST(JobPeers, WhoIsGoneCountsAsInside) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(IsInsideJob(child));
}

TEST(JobPeers, AJobAboveTheServerItselfDoesNotCount) {
  const pid_t job = ::fork();
  if (job == 0) {
    NameThisProcess(kSupervisorName);
    const pid_t server = ::fork();
    if (server == 0) {
      NameThisProcess("athanor");
      bool right = false;
      {
        const Family beside("bash");
        const Family inner(kSupervisorName);
        right = !IsInsideJob(beside.child()) && IsInsideJob(inner.child());
      }
      ::_exit(right ? 0 : 1);
    }
    int status = 1;
    ::waitpid(server, &status, 0);
    ::_exit(status == 0 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(job, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(JobPeers, ASocketIsItsHoldersAndNobodysIfNoProcessHasIt) {
  const uint32_t uid = ::getuid();
  UniqueFd ours(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const uint64_t inode = InodeOf(ours.get());
  EXPECT_EQ(HoldersOutside({inode}, uid), (std::map<uint64_t, pid_t>{{inode, ::getpid()}}));
  const Family job(kSupervisorName, ours.get());
  ours.reset();
  EXPECT_TRUE(HoldersOutside({inode}, uid).empty());  // the job's child alone has it
  // On its way in a message: it is open, but no process has it.
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  UniqueFd sent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const uint64_t hidden = InodeOf(sent.get());
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = sent.get();
  std::memcpy(CMSG_DATA(header), &number, sizeof number);
  ASSERT_EQ(::sendmsg(ends[0], &message, 0), 1);
  sent.reset();
  EXPECT_TRUE(HoldersOutside({hidden}, uid).empty());
  ::close(ends[0]);
  ::close(ends[1]);
}

class NowPool final : public Pool {
 public:
  bool Submit(Task task) override {
    task();
    return true;
  }
  void Stop() override {}
};

TEST(JobPeers, LooksForSocketsOnlyWhileAttemptsAreThere) {
  TestDir dir;
  SimExecutor executor;
  NowPool pool;
  JobPeers peers(executor, pool, dir / "attempts");
  Peer peer;
  peer.loopback = true;
  peer.uid = ::getuid();
  peer.inode = 1;  // nobody's
  std::vector<bool> said;
  const auto note = [&](bool outside) { said.push_back(outside); };
  peers.Judge(peer, note);
  EXPECT_EQ(said, std::vector<bool>{true});
  ASSERT_EQ(::mkdir((dir / "attempts").c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((dir / "attempts/one").c_str(), 0700), 0);
  peers.Judge(peer, note);
  UniqueFd ours(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  peer.inode = InodeOf(ours.get());
  peers.Judge(peer, note);
  executor.RunUntilIdle();
  EXPECT_EQ(said, (std::vector<bool>{true, false, true}));
  peer.inode.reset();
  peers.Judge(peer, note);
  EXPECT_FALSE(said.back());
}

TEST(JobPeers, AUnixPeerIsKnownByItsPid) {
  SimExecutor executor;
  NowPool pool;
  JobPeers peers(executor, pool, "/nowhere");
  Peer peer;
  peer.unix_socket = true;
  peer.uid = ::getuid();
  const Family job(kSupervisorName);
  std::optional<bool> said;
  for (const auto& [pid, outside] :
       {std::pair(job.child(), false), std::pair(::getpid(), true), std::pair(0, false)}) {
    peer.pid = pid;
    peers.Judge(peer, [&](bool is) { said = is; });
    EXPECT_EQ(said, outside) << pid;
  }
}

}  // namespace
}  // namespace athanor
