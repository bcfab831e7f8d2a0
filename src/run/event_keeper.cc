#include "run/event_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/fd.h"
#include "base/files.h"
#include "base/format.h"
#include "base/text.h"

namespace athanor {
namespace {

// Whose file is whose: "<attempt>\t<path below the folder>" a line.
constexpr char kList[] = ".attempts";

struct Listed {
  uint32_t attempt = 0;
  std::string path;
};

std::vector<Listed> ReadList(const std::string& dir) {
  std::vector<Listed> list;
  const auto text = ReadFile(JoinPath(dir, kList));
  if (!text) return list;
  for (const auto& line : Split(*text, '\n')) {
    const auto tab = line.find('\t');
    if (tab == std::string::npos) continue;
    list.push_back({static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10)),
                    line.substr(tab + 1)});
  }
  return list;
}

std::string SubRunOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

bool SameFile(int fd, const std::string& path) {
  struct stat a {};
  struct stat b {};
  return ::fstat(fd, &a) == 0 && ::lstat(path.c_str(), &b) == 0 && a.st_ino == b.st_ino &&
         a.st_dev == b.st_dev;
}

Result<UniqueFd> OpenPart(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!fd) return FailErrno("open " + path, errno);
  return fd;
}

}  // namespace

EventKeeper::EventKeeper(std::string dir, uint32_t attempt)
    : dir_(std::move(dir)), attempt_(attempt) {}

Status EventKeeper::Keep(int fd, const std::string& sub_run, const std::string& name) {
  const auto folder = sub_run.empty() ? dir_ : JoinPath(dir_, sub_run);
  ATHANOR_CHECK_OK(MakeDirs(folder, 0755));
  auto kept = name;
  if (SameFile(fd, JoinPath(folder, kept))) return Ok();
  // Another attempt's file of the same name.
  if (Exists(JoinPath(folder, kept))) kept += fmt::format(".attempt-{}", attempt_);
  const auto path = JoinPath(folder, kept);
  if (SameFile(fd, path)) return Ok();
  // Listed first: a file without a list would count for no attempt.
  ATHANOR_TRY(const auto list, OpenPart(JoinPath(dir_, kList), O_WRONLY | O_CREAT | O_APPEND));
  const auto below = sub_run.empty() ? kept : sub_run + "/" + kept;
  ATHANOR_CHECK_OK(WriteAll(list.get(), fmt::format("{}\t{}\n", attempt_, below)));
  // By descriptor: the name may mean another file by now.
  const auto opened = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    return Ok();
  }
  return FailErrno("link " + path, errno);
}

void EventKeeper::Saw(const std::string& sub_run, std::string_view tag, int64_t step) {
  if (attempt_ <= 1) return;
  auto& cuts = cuts_[sub_run];
  const auto known = cuts.find(tag);
  if (known != cuts.end() && known->second <= step) return;
  if (known == cuts.end()) {
    cuts.emplace(tag, step);
  } else {
    known->second = step;
  }
  changed_.insert(sub_run);
}

Status EventKeeper::Settle() {
  const auto changed = changed_;
  std::set<std::string> seen;
  for (const auto& listed : ReadList(dir_)) {
    const auto sub_run = SubRunOf(listed.path);
    if (listed.attempt >= attempt_ || !changed.contains(sub_run)) continue;
    if (!seen.insert(listed.path).second) continue;
    ATHANOR_CHECK_OK(Part(listed.path, listed.attempt, cuts_[sub_run]));
  }
  changed_.clear();
  return Ok();
}

Status EventKeeper::Part(const std::string& path, uint32_t attempt, const StepCuts& cuts) {
  const auto main = JoinPath(dir_, path);
  auto from = OpenPart(main, O_RDONLY);
  if (!from) return from.error().code == ErrorCode::kNotFound ? Ok() : Fail(from.error());
  ATHANOR_TRY(const auto behind, CountBehind(from->get(), cuts));
  if (behind == 0) return Ok();
  const auto branch = JoinPath(
      JoinPath(dir_, fmt::format("abandoned/attempt-{}-by-{}", attempt, attempt_)), path);
  ATHANOR_CHECK_OK(MakeDirs(DirName(branch), 0755));
  // Names without "tfevents" in them: no reader takes these for event files.
  const auto kept_part = JoinPath(DirName(main), ".kept.part");
  const auto branch_part = JoinPath(DirName(branch), ".abandoned.part");
  ::unlink(branch_part.c_str());
  ATHANOR_TRY(const auto kept, OpenPart(kept_part, O_WRONLY | O_CREAT | O_TRUNC));
  ATHANOR_TRY(const auto abandoned, OpenPart(branch_part, O_WRONLY | O_CREAT | O_TRUNC));
  if (auto earlier = OpenPart(branch, O_RDONLY)) {
    // Other tags went this way before.
    ATHANOR_TRY(const auto bytes, ReadAll(earlier->get()));
    ATHANOR_CHECK_OK(WriteAll(abandoned.get(), bytes));
  }
  ATHANOR_CHECK_OK(SplitByStep(from->get(), cuts, kept.get(), abandoned.get()));
  // The branch first: after a crash in between it is there twice, never nowhere.
  if (std::rename(branch_part.c_str(), branch.c_str()) != 0) return FailErrno(branch, errno);
  if (std::rename(kept_part.c_str(), main.c_str()) != 0) return FailErrno(main, errno);
  return Ok();
}

}  // namespace athanor
