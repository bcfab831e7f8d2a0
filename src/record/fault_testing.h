// For tests only: seeds that are printed, children that are killed, a full disk.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/test_dir.h"

namespace athanor {

// A new seed each time; ATHANOR_TEST_SEED repeats a run.
inline uint64_t TestSeed() {
  const char* given = std::getenv("ATHANOR_TEST_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("ATHANOR_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(engine_);
  }
  bool Once(uint64_t in) { return Below(in) == 0; }
  uint64_t Bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Runs `work` in a child, kills it (SIGKILL) once it has called its argument
// `after` times, and returns all numbers it had called it with by then.
inline std::vector<uint64_t> KillAfter(
    size_t after, const std::function<void(const std::function<void(uint64_t)>&)>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    work([&](uint64_t number) {
      if (::write(ends[1], &number, sizeof(number)) != sizeof(number)) ::_exit(1);
    });
    for (;;) ::pause();
  }
  ::close(ends[1]);
  std::vector<uint64_t> numbers;
  uint64_t number = 0;
  // Eight bytes are less than PIPE_BUF: a number arrives completely or not at all.
  while (::read(ends[0], &number, sizeof(number)) == sizeof(number)) {
    numbers.push_back(number);
    if (numbers.size() == after) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself, with " << status;
  return numbers;
}

// A file system of a few pages, seen by this process only.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) {
      why_not_ = std::string("a small file system needs root: ") + std::strerror(errno);
    }
  }
  ~SmallDisk() {
    if (why_not_.empty()) ::umount2(dir_.path().c_str(), MNT_DETACH);
  }
  const std::string& why_not() const { return why_not_; }
  const std::string& path() const { return dir_.path(); }

  // Uses all pages except `pages`, until Free().
  void Fill(size_t pages) {
    auto free = FreeBytes(dir_.path());
    ASSERT_TRUE(free);
    ASSERT_GE(*free, pages * 4096);
    const std::string ballast(*free - pages * 4096, 'b');
    if (!ballast.empty()) {
      ASSERT_TRUE(ReplaceFile(dir_ / "ballast", ballast).ok());
    }
  }
  void Free() { ::unlink((dir_ / "ballast").c_str()); }

 private:
  TestDir dir_;
  std::string why_not_;
};

// Replacing a file by rename makes ext4 flush it, which thousands of times takes long.
inline void PutBytes(const std::string& path, std::string_view bytes) {
  ::unlink(path.c_str());
  ASSERT_TRUE(ReplaceFile(path, bytes).ok());
}

inline size_t OpenDescriptors() { return ListDir("/proc/self/fd").value().size(); }

}  // namespace athanor
