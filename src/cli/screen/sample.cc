#include "cli/screen/sample.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "base/io/files.h"
#include "feed/channel.h"

namespace athanor {
namespace {

// A sample must not take as long as the copy that it saves: files beyond this are not counted.
constexpr uint64_t kMostLooked = 500'000;

struct File {
  std::string name;  // relative to the channel
  uint64_t bytes = 0;
  bool link = false;
};
using Folders = std::deque<std::vector<File>>;

Result<Folders> Look(const std::string& root, Sample& sample) {
  Folders folders;
  std::deque<std::string> open{""};
  while (!open.empty() && sample.all_files < kMostLooked) {
    const auto below = open.front();
    open.pop_front();
    ATHANOR_TRY(auto names, ListDir(JoinPath(root, below)));
    std::vector<File> files;
    for (const auto& name : names) {
      const auto relative = below.empty() ? name : below + "/" + name;
      struct stat info {};
      if (::lstat(JoinPath(root, relative).c_str(), &info) != 0) continue;
      if (S_ISDIR(info.st_mode)) {
        open.push_back(relative);
      } else if (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) {
        const auto bytes = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
        files.push_back({relative, bytes, static_cast<bool>(S_ISLNK(info.st_mode))});
        sample.all_files += 1;
        sample.all_bytes += bytes;
      }
    }
    if (!files.empty()) folders.push_back(std::move(files));
  }
  return folders;
}

Status Take(const std::string& from, const std::string& to, bool link) {
  if (link) {
    std::string target(4096, '\0');
    const ssize_t size = ::readlink(from.c_str(), target.data(), target.size() - 1);
    if (size < 0) return FailErrno("read " + from, errno);
    target.resize(static_cast<size_t>(size));
    if (::symlink(target.c_str(), to.c_str()) != 0) return FailErrno("link " + to, errno);
    return Ok();
  }
  if (::link(from.c_str(), to.c_str()) == 0) return Ok();
  ATHANOR_CHECK_OK(CopyChannel(from, to));
  return Ok();
}

}  // namespace

Result<Sample> TakeSample(const std::string& from, const std::string& to,
                          const SampleLimits& limits) {
  Sample sample;
  struct stat info {};
  if (::stat(from.c_str(), &info) != 0) return FailErrno(from, errno);
  if (!S_ISDIR(info.st_mode)) {
    sample = {1, static_cast<uint64_t>(info.st_size), 1, static_cast<uint64_t>(info.st_size)};
    ATHANOR_CHECK_OK(Take(from, to, false));
    return sample;
  }
  ATHANOR_CHECK_OK(MakeDirs(to));
  ATHANOR_TRY(auto folders, Look(from, sample));
  for (size_t turn = 0;; ++turn) {
    bool any = false;
    for (const auto& files : folders) {
      if (turn >= files.size()) continue;
      if (sample.files >= limits.files || (sample.files > 0 && sample.bytes >= limits.bytes)) {
        return sample;
      }
      const auto& file = files[turn];
      const auto target = JoinPath(to, file.name);
      ATHANOR_CHECK_OK(MakeDirs(DirName(target)));
      ATHANOR_CHECK_OK(Take(JoinPath(from, file.name), target, file.link));
      sample.files += 1;
      sample.bytes += file.bytes;
      any = true;
    }
    if (!any) return sample;
  }
}

}  // namespace athanor
