#include "run/events/projector_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "eventfile/projector.h"

namespace athanor {
namespace {

constexpr int64_t kMostConfig = 1 << 20;

// A second name for the file of `fd`, in place of what has the name now.
Status LinkAs(int fd, const std::string& path) {
  ATHANOR_CHECK_OK(MakeDirs(DirName(path), 0755));
  const auto part = path + ".part";
  ::unlink(part.c_str());
  const auto opened = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, part.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return FailErrno("link " + path, errno);
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) return FailErrno(path, errno);
  ::unlink(part.c_str());  // a rename onto the same file leaves both names
  return Ok();
}

// A copy of the text in `fd`, in place of what has the name now; what is not text is left out.
Status CopyAs(const ExitGate& gate, int fd, const std::string& path) {
  ATHANOR_CHECK_OK(MakeDirs(DirName(path), 0755));
  const auto part = path + ".part";
  UniqueFd to(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!to) return FailErrno("write " + path, errno);
  const auto copied = gate.CopyText(fd, to.get());
  if (copied && *copied && std::rename(part.c_str(), path.c_str()) == 0) return Ok();
  ::unlink(part.c_str());
  return copied ? Ok() : Fail(copied.error());
}

}  // namespace

ProjectorKeeper::ProjectorKeeper(std::string keep_dir, const ExitGate& gate)
    : keep_dir_(std::move(keep_dir)), gate_(gate) {}

Status ProjectorKeeper::Keep(int root, const std::string& config, const std::string& sub_run) {
  const auto fd = OpenBeneath(root, config, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size > kMostConfig) {
    return Ok();
  }
  const Stamp stamp{info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_size};
  if (const auto known = kept_.find(config); known != kept_.end() && known->second == stamp)
    return Ok();
  ATHANOR_TRY(auto text, ReadAll(fd->get()));
  (void)gate_.ScrubText(text);
  const auto from = DirName(config);
  const auto to = sub_run.empty() ? keep_dir_ : JoinPath(keep_dir_, sub_run);
  bool all = true;
  for (const auto& one : ReadProjectorConfig(text)) {
    for (const auto& path : {one.tensor_path, one.metadata_path}) {
      if (path.empty()) continue;
      const auto table =
          OpenBeneath(root, from == "." ? path : JoinPath(from, path), O_RDONLY | O_NONBLOCK);
      struct stat there {};
      if (!table || ::fstat(table->get(), &there) != 0 || !S_ISREG(there.st_mode)) {
        all = false;
        continue;
      }
      const auto place = JoinPath(to, path);
      ATHANOR_CHECK_OK(path == one.metadata_path ? CopyAs(gate_, table->get(), place)
                                                 : LinkAs(table->get(), place));
    }
  }
  // Last, so that what it names is there; a copy, since writers change it in place.
  ATHANOR_CHECK_OK(MakeDirs(to, 0755));
  ATHANOR_CHECK_OK(ReplaceFile(JoinPath(to, kProjectorConfig), text, 0644));
  if (all) kept_[config] = stamp;
  return Ok();
}

}  // namespace athanor
