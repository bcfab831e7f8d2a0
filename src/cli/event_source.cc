#include "cli/event_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr uint64_t kPiece = 1 << 20;  // bytes read before points are handed on
constexpr int kDeepest = 32;          // folders

}  // namespace

Result<EventSource> EventSource::Open(std::string root) {
  struct stat info {};
  if (::stat(root.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Fail(
        Error{ErrorCode::kNotFound, "there is no folder " + Printable(root),
              "ath import tb DIR    with the folder that you would give to tensorboard --logdir"}
            .Id("ATH-C0051"));
  }
  return EventSource(std::move(root));
}

void EventSource::Look(const std::string& folder) {
  if (std::count(folder.begin(), folder.end(), '/') > kDeepest) return;
  const auto names = ListDir(JoinPath(root_, folder));
  if (!names) return;
  for (const auto& name : *names) {
    const std::string path = folder.empty() ? name : folder + "/" + name;
    struct stat info {};
    if (::lstat(JoinPath(root_, path).c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      Look(path);
      continue;
    }
    if (!S_ISREG(info.st_mode) || name.find("tfevents") == std::string::npos ||
        files_.contains(path)) {
      continue;
    }
    UniqueFd fd(::open(JoinPath(root_, path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
      problems_.push_back(Printable(path) + " cannot be opened");
      files_.emplace(path, nullptr);
      continue;
    }
    const std::string run = folder.empty() ? "." : folder;
    files_.emplace(path, std::make_unique<File>(
                             File{run, Crc32c(name), EventReader(std::move(fd)), runs_[run], 0}));
  }
}

void EventSource::Again(const std::string& path) { files_.erase(path); }

void EventSource::TakeRecord(const File& file, uint64_t offset, std::string_view payload,
                             FrameMaker& made) {
  EventView event;
  if (!ReadEvent(payload, event) || event.kind != EventView::Kind::kSummary) return;
  uint64_t seq = offset;  // a value takes more than a byte of its record
  SummaryValue value;
  while (TakeValue(event.body, value)) {
    ++seq;
    const bool simple = value.form == SummaryValue::Form::kSimple;
    if (value.tag.empty() || (!simple && file.known.kinds.KindOf(value) != "scalars")) continue;
    const auto number = ScalarOf(value);
    if (!number) continue;
    if (value.tag.size() > kMaxSeriesName) {
      problems_.push_back(fmt::format("{}: a tag of {} bytes is too long for a metric's name",
                                      Printable(file.run), value.tag.size()));
      continue;
    }
    const int64_t wall_ns = WallNs(event.wall_time);
    if (file.known.first_ms == 0) file.known.first_ms = wall_ns / 1'000'000;
    file.known.last_ms = std::max(file.known.last_ms, wall_ns / 1'000'000);
    made.Add(seq, value.tag, event.step, wall_ns, *number);
  }
}

Status EventSource::Read(const std::string& path, File& file, size_t most, const Take& take) {
  for (bool more = true; more;) {
    FrameMaker made(file.channel);
    while (more && made.points() < most) {
      auto read = file.reader.Poll(
          [&](uint64_t offset, std::string_view payload) {
            TakeRecord(file, offset, payload, made);
          },
          kPiece);
      if (!read) return Fail(std::move(read).error());
      more = *read;
    }
    for (; file.damage < file.reader.damage().size(); ++file.damage) {
      problems_.push_back(fmt::format("{} is damaged at byte {}: what is there was passed over",
                                      Printable(path), file.reader.damage()[file.damage].offset));
    }
    if (made.points() == 0) continue;
    ATHANOR_CHECK_OK(
        take({file.run, made.Take(), made.points(), file.known.first_ms, file.known.last_ms}));
  }
  return Ok();
}

Status EventSource::Poll(size_t most, const Take& take) {
  Look("");
  for (auto& entry : files_) {
    if (entry.second) ATHANOR_CHECK_OK(Read(entry.first, *entry.second, most, take));
  }
  return Ok();
}

}  // namespace athanor
