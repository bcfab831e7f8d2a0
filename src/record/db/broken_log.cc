#include "record/db/broken_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/db/page_check.h"

namespace athanor {
namespace {

constexpr std::string_view kNote = ".txt";

std::string LogOf(const std::string& path) { return path + "-wal"; }

// Whether the file has what the log has: all of it, or some of what follows the damage. A log stays
// for a while after it was merged.
struct Taken {
  bool all = false;
  bool some_behind = false;
};
Result<Taken> LookAtFile(const std::string& path, int log, const LogWalk& walk) {
  std::map<uint32_t, uint64_t> newest;  // page -> frame
  std::set<uint32_t> unknown;           // it is unknown which of these images is the newest
  uint64_t last_commit = 0;
  for (uint64_t i = 0; i < walk.frames.size(); ++i) {
    const LogFrameSeen& frame = walk.frames[i];
    if (frame.of_this_log && frame.pages_then != 0 && (frame.sound || frame.flipped)) {
      last_commit = i + 1;
    }
  }
  for (uint64_t i = 0; i < last_commit; ++i) {
    const LogFrameSeen& frame = walk.frames[i];
    if (frame.sound) newest[frame.page] = i + 1;
    if (!frame.sound) unknown.insert(frame.page);
  }
  Taken taken{true, false};
  bool compared = false;
  ATHANOR_TRY(const UniqueFd file, OpenToRead(path));
  for (const auto& [page, frame] : newest) {
    if (unknown.contains(page) && frame <= walk.kept) continue;
    ATHANOR_TRY(const std::string there,
                ReadAt(file.get(), uint64_t{page - 1} * walk.page_size, walk.page_size));
    ATHANOR_TRY(const std::string here,
                ReadAt(log, walk.FrameAt(frame) + kLogFrameHeaderBytes, walk.page_size));
    // The checksums at their ends are added when they are merged.
    const size_t size = walk.page_size - kPageCheckBytes;
    const bool same = there.size() == here.size() && there.compare(0, size, here, 0, size) == 0;
    compared = true;
    taken.all = taken.all && same;
    taken.some_behind = taken.some_behind || (same && frame > walk.kept);
  }
  taken.all = taken.all && compared;
  return taken;
}

std::string Commits(uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "commit" : "commits");
}

Result<LogState> Judge(const std::string& path, int log, LogWalk walk) {
  LogState state;
  const std::string name = LogOf(path);
  if (!walk.damaged && !walk.patches.empty()) {
    state.kind = LogState::Kind::kFlipped;
    state.said = fmt::format(
        "bits had flipped in the log of the store and were put right by what is around them: {}; "
        "nothing is lost, but look after the disk and the memory of this machine",
        name);
  }
  if (walk.damaged) {
    const auto broken = std::find_if(walk.frames.begin(), walk.frames.end(),
                                     [](const LogFrameSeen& frame) { return !frame.sound; });
    ATHANOR_TRY(const auto taken, LookAtFile(path, log, walk));
    const std::string where =
        walk.header_sound
            ? fmt::format("at frame {} of {}", broken - walk.frames.begin() + 1, walk.frames.size())
            : std::string("at its beginning");
    if (taken.all) {
      state.kind = LogState::Kind::kTaken;
      state.said = fmt::format(
          "the log of the store is damaged {}, but all of it was in the store already: {}; "
          "nothing is lost",
          where, name);
    } else {
      state.kind = taken.some_behind ? LogState::Kind::kMixed : LogState::Kind::kCut;
      state.said = fmt::format(
          "the log of the store is damaged {}: {}; what was committed before is kept ({}), what "
          "was "
          "committed after it is LOST (at least {})",
          where, name, Commits(walk.kept_commits), Commits(std::max<uint64_t>(walk.cut_off, 1)));
      if (state.kind == LogState::Kind::kMixed) {
        state.said +=
            "; parts of what is lost may be in the store already, so records may not "
            "agree: run `ath server stop`, then `ath fsck`, or restore a backup";
      }
    }
  }
  state.walk = std::move(walk);
  return state;
}

struct Stamp {
  off_t size = 0;
  timespec changed{};
  static Result<Stamp> Of(int fd) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return FailErrno("stat a log", errno);
    return Stamp{info.st_size, info.st_mtim};
  }
  bool operator==(const Stamp& other) const {
    return size == other.size && changed.tv_sec == other.changed.tv_sec &&
           changed.tv_nsec == other.changed.tv_nsec;
  }
};

Result<LogState> Look(const std::string& path, int log) {
  ATHANOR_TRY(const Stamp before, Stamp::Of(log));
  if (before.size <= static_cast<off_t>(kLogHeaderBytes)) return LogState{};
  ATHANOR_TRY(LogWalk walk,
              WalkLog([&](uint64_t at, size_t size) { return ReadAt(log, at, size); }));
  ATHANOR_TRY(LogState state, Judge(path, log, std::move(walk)));
  ATHANOR_TRY(const Stamp after, Stamp::Of(log));
  // Another process is writing to it: what was read never existed at one time.
  if (!(before == after)) return LogState{};
  return state;
}

Result<std::string> KeepAside(const std::string& path, int log, const LogState& state) {
  const std::string log_path = LogOf(path);
  std::string time = Rfc3339(SystemClock().Wall()).substr(0, 19);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  const bool lost = state.kind == LogState::Kind::kCut || state.kind == LogState::Kind::kMixed;
  const std::string name = fmt::format("{}.{}.{}Z", log_path, lost ? "broken" : "mended", time);
  std::string kept = name;
  for (int more = 2; Exists(kept); ++more) kept = fmt::format("{}.{}", name, more);
  const auto copied = [&]() -> Status {
    const UniqueFd out(::open(kept.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!out) return FailErrno("create " + kept, errno);
    for (uint64_t at = 0;;) {
      ATHANOR_TRY(const std::string piece, ReadAt(log, at, 1 << 20));
      if (piece.empty()) break;
      ATHANOR_CHECK_OK(WriteAll(out.get(), piece));
      at += piece.size();
    }
    if (::fdatasync(out.get()) != 0) return FailErrno("sync " + kept, errno);
    return WriteFileAtomic(kept + std::string(kNote), state.said + "\n");
  }();
  if (copied.ok()) return kept;
  ::unlink(kept.c_str());
  Error error = copied.error();
  error.what = "the log of the store is damaged, and no copy of it could be kept: " + error.what;
  if (error.hint.empty()) error.hint = "df -h " + ShellQuote(DirName(path));
  return Fail(std::move(error));
}

}  // namespace

Result<LogState> LookAtLog(const std::string& path) {
  if (!Exists(LogOf(path))) return LogState{};
  ATHANOR_TRY(const UniqueFd log, OpenToRead(LogOf(path)));
  return Look(path, log.get());
}

Result<std::string> MendLog(const std::string& path) {
  const std::string log_path = LogOf(path);
  const UniqueFd log(::open(log_path.c_str(), O_RDWR | O_CLOEXEC));
  if (!log) return std::string();  // none; or not ours to change, as SQLite will report
  ATHANOR_TRY(const LogState state, Look(path, log.get()));
  if (state.kind == LogState::Kind::kWhole) return std::string();
  ATHANOR_TRY(const std::string kept, KeepAside(path, log.get(), state));
  for (const auto& patch : state.walk.patches) {
    const ssize_t written =
        ::pwrite(log.get(), patch.bytes.data(), patch.bytes.size(), static_cast<off_t>(patch.at));
    if (written != static_cast<ssize_t>(patch.bytes.size())) {
      return FailErrno("mend " + log_path, errno);
    }
  }
  // What is cut off must be removed, or it would be found again after what is written next.
  const uint64_t end = state.kind == LogState::Kind::kTaken || !state.walk.header_sound
                           ? 0
                           : state.walk.FrameAt(state.walk.kept + 1);
  if (state.kind != LogState::Kind::kFlipped &&
      ::ftruncate(log.get(), static_cast<off_t>(end)) != 0) {
    return FailErrno("cut " + log_path, errno);
  }
  if (::fsync(log.get()) != 0) return FailErrno("sync " + log_path, errno);
  return fmt::format("{}; as it was: {}", state.said, kept);
}

std::vector<std::string> BrokenLogsOf(const std::string& path) {
  std::vector<std::string> found;
  const auto names = ListDir(DirName(path));
  const std::string begin = BaseName(path) + "-wal.broken.";
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    if (StartsWith(name, begin) && !EndsWith(name, kNote)) {
      found.push_back(JoinPath(DirName(path), name));
    }
  }
  return found;
}

std::string NoteOf(const std::string& broken_log) {
  return std::string(Trim(ReadFile(broken_log + std::string(kNote), 1 << 16).value_or("")));
}

}  // namespace athanor
