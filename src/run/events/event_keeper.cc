#include "run/events/event_keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// Whose file is whose: "<attempt>\t<path below the folder>\t<number>" a line.
constexpr char kList[] = ".attempts";

struct Listed {
  uint32_t attempt = 0;
  std::string path;
  std::string number;  // of the file in its attempt; empty: not known any more
};

std::vector<Listed> ReadList(const std::string& dir) {
  std::vector<Listed> list;
  const auto text = ReadFile(JoinPath(dir, kList));
  if (!text) return list;
  for (const auto& line : Split(*text, '\n')) {
    const auto parts = Split(line, '\t');
    if (parts.size() < 2) continue;
    list.push_back({static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10)), parts[1],
                    parts.size() > 2 ? parts[2] : std::string()});
  }
  return list;
}

std::string SubRunOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

Result<UniqueFd> OpenPart(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!fd) return FailErrno("open " + path, errno);
  return fd;
}

}  // namespace

EventKeeper::EventKeeper(std::string dir, uint32_t attempt)
    : dir_(std::move(dir)), attempt_(attempt) {}

Result<std::string> EventKeeper::PlaceFor(uint32_t number, const std::string& sub_run,
                                          const std::string& name) {
  const auto below = [&](const std::string& kept) {
    return sub_run.empty() ? kept : sub_run + "/" + kept;
  };
  const auto listed = ReadList(dir_);
  for (const auto& one : listed) {
    if (one.attempt == attempt_ && one.number == std::to_string(number)) {
      return JoinPath(dir_, one.path);
    }
  }
  ATHANOR_CHECK_OK(MakeDirs(sub_run.empty() ? dir_ : JoinPath(dir_, sub_run), 0755));
  // Another file may have the name: one of an earlier attempt, or of a folder that is named by a
  // time, which is left out.
  auto kept = name;
  if (Exists(JoinPath(dir_, below(kept)))) kept += fmt::format(".attempt-{}", attempt_);
  if (Exists(JoinPath(dir_, below(kept)))) kept += fmt::format(".{}", number);
  // Listed first: a file without an entry would belong to no attempt.
  ATHANOR_TRY(const auto list, OpenPart(JoinPath(dir_, kList), O_WRONLY | O_CREAT | O_APPEND));
  ATHANOR_CHECK_OK(
      WriteAll(list.get(), fmt::format("{}\t{}\t{}\n", attempt_, below(kept), number)));
  return JoinPath(dir_, below(kept));
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
  const auto branch =
      JoinPath(JoinPath(dir_, fmt::format("abandoned/attempt-{}-by-{}", attempt, attempt_)), path);
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
  // The branch first: after a crash in between, it exists twice, never not at all.
  if (std::rename(branch_part.c_str(), branch.c_str()) != 0) return FailErrno(branch, errno);
  if (std::rename(kept_part.c_str(), main.c_str()) != 0) return FailErrno(main, errno);
  return Ok();
}

}  // namespace athanor
