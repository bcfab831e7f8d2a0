// For tests only: a real process that writes to a checkpoint directory on command, one step at a
// time; files as a script would leave them; and a job's files, here or at a server.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/io/files.h"
#include "link/job_files_testing.h"
#include "run/job_files_testing.h"

namespace athanor {

// The files of one job, whose folder is `dir`, and of one that is in `dir`/earlier.
class TestJobFiles {
 public:
  TestJobFiles(Reach reach, const std::string& dir, const std::string& shared_dir)
      : dir_(dir), shared_dir_(shared_dir) {
    if (reach == Reach::kServer) server_ = std::make_unique<FilesServer>(Options(1, ""));
  }
  // Of a server, the attempt whose files were opened last is the one that may.
  std::unique_ptr<JobFiles> Open(uint32_t attempt = 1) {
    if (!server_) return LocalJobFiles::Open(Options(attempt, shared_dir_)).value();
    server_->ChangeGrant([&](JobFilesGrant& grant) { grant.files = Options(attempt, ""); });
    return RemoteJobFiles::Open(server_->Tls()).value();
  }
  FilesServer* server() { return server_.get(); }  // null: used in place

  // Until Mend, no part can be stored.
  void Break() {
    if (server_) {
      port_ = server_->tls_port();
      return server_->Stop();
    }
    ASSERT_EQ(::rename((dir_ + "/parts/tmp").c_str(), (dir_ + "/parts/gone").c_str()), 0);
  }
  void Mend() {
    if (server_) return server_->Start(port_);
    ASSERT_EQ(::rename((dir_ + "/parts/gone").c_str(), (dir_ + "/parts/tmp").c_str()), 0);
  }

 private:
  LocalJobFiles::Options Options(uint32_t attempt, const std::string& shared_dir) const {
    return {dir_ + "/blobs", dir_, dir_ + "/earlier", shared_dir, attempt};
  }

  const std::string dir_;
  const std::string shared_dir_;
  std::unique_ptr<FilesServer> server_;
  uint16_t port_ = 0;
};

// Runs `body` in a child. `Step()` in the child waits for Go() in the parent; Go() returns
// when the child has come to its next Step(), or has ended.
class Puppet {
 public:
  using Step = std::function<void()>;
  explicit Puppet(const std::function<void(const Step&)>& body) {
    int go[2];
    int done[2];
    if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(go[1]);
      ::close(done[0]);
      body([&] {
        char byte = 'd';
        if (::write(done[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) ::_exit(0);
      });
      ::_exit(0);
    }
    ::close(go[0]);
    ::close(done[1]);
    go_ = UniqueFd(go[1]);
    done_ = UniqueFd(done[0]);
    Wait();
  }
  ~Puppet() { Kill(); }
  void Go() {
    char byte = 'g';
    if (::write(go_.get(), &byte, 1) == 1) Wait();
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  int pid() const { return pid_; }
  std::vector<int> pids() const { return pid_ > 0 ? std::vector<int>{pid_} : std::vector<int>{}; }

 private:
  void Wait() {
    char byte = 0;
    (void)!::read(done_.get(), &byte, 1);
  }
  pid_t pid_ = 0;
  UniqueFd go_;
  UniqueFd done_;
};

inline void Put(const std::string& path, std::string_view bytes) {
  ASSERT_TRUE(MakeDirs(DirName(path)).ok());
  ASSERT_TRUE(ReplaceFile(path, bytes, 0640).ok());
}

// In a child: opens, writes, and leaves it open.
inline int OpenAndWrite(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || !WriteAll(fd, bytes).ok()) ::_exit(9);
  return fd;
}

// All regular files below a folder with their bytes.
inline std::map<std::string, std::string> TreeOf(const std::string& dir,
                                                 const std::string& prefix = "") {
  std::map<std::string, std::string> tree;
  const auto names = ListDir(dir);
  if (!names) return tree;
  for (const auto& name : *names) {
    const std::string path = JoinPath(dir, name);
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      tree.merge(TreeOf(path, prefix + name + "/"));
    } else if (S_ISREG(info.st_mode)) {
      tree[prefix + name] = ReadFile(path).value();
    }
  }
  return tree;
}

}  // namespace athanor
