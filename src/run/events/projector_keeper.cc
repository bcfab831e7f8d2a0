#include "run/events/projector_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/unnamed_file.h"
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

}  // namespace

ProjectorKeeper::ProjectorKeeper(Options options, const ExitGate& gate)
    : options_(std::move(options)), gate_(gate) {}

Status ProjectorKeeper::KeepNumbers(int fd, const std::string& name) {
  if (!options_.local_dir.empty()) {
    const auto below = name.substr(options_.folder.size() + 1);
    if (LinkAs(fd, JoinPath(options_.local_dir, below))) return Ok();
  }
  return options_.files.Replace(name, fd);
}

// What is not text is left out.
Status ProjectorKeeper::KeepText(int fd, const std::string& name) {
  ATHANOR_TRY(const auto clean, UnnamedFile(options_.scratch_dir));
  ATHANOR_TRY(const bool is_text, gate_.CopyText(fd, clean.get()));
  return is_text ? options_.files.Replace(name, clean.get()) : Ok();
}

Status ProjectorKeeper::Keep(int root, const std::string& config, const std::string& sub_run) {
  const auto fd = OpenBeneath(root, config, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size > kMostConfig) {
    return Ok();
  }
  const auto stamp_of = [](const struct stat& of) {
    return Stamp{of.st_mtim.tv_sec * 1'000'000'000 + of.st_mtim.tv_nsec, of.st_size, of.st_ino};
  };
  if (const auto known = kept_.find(config);
      known != kept_.end() && known->second == stamp_of(info))
    return Ok();
  ATHANOR_TRY(auto text, ReadAll(fd->get()));
  (void)gate_.ScrubText(text);
  const auto from = DirName(config);
  const auto to = sub_run.empty() ? options_.folder : JoinPath(options_.folder, sub_run);
  const auto config_place = JoinPath(to, kProjectorConfig);
  bool all = true;
  bool news = tables_[config_place] != stamp_of(info);
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
      if (const auto known = tables_.find(place);
          known != tables_.end() && known->second == stamp_of(there)) {
        continue;
      }
      ATHANOR_CHECK_OK(path == one.metadata_path ? KeepText(table->get(), place)
                                                 : KeepNumbers(table->get(), place));
      tables_[place] = stamp_of(there);
      news = true;
    }
  }
  // Last, so that what it names is there; a copy, since writers change it in place.
  if (news) ATHANOR_CHECK_OK(ReplaceWith(options_.files, config_place, text));
  tables_[config_place] = stamp_of(info);
  if (all) kept_[config] = stamp_of(info);
  return Ok();
}

}  // namespace athanor
