#include "cli/event_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/format.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr size_t kLongestName = 1'024;  // of a series
constexpr uint64_t kPiece = 4 << 20;    // bytes read before points are handed on
constexpr int kDeepest = 32;            // folders

}  // namespace

Result<EventSource> EventSource::Open(std::string root) {
  struct stat info {};
  if (::stat(root.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Fail(Error{ErrorCode::kNotFound, "there is no folder " + Printable(root),
                      "ath import tb DIR    with the folder that you would give to tensorboard --logdir",
                      "", "ATH-C0051", ""});
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
    files_.emplace(path, std::make_unique<File>(File{folder.empty() ? "." : folder, Crc32c(name),
                                                     EventReader(std::move(fd)), 0}));
  }
}

void EventSource::Again(const std::string& path) { files_.erase(path); }

void EventSource::TakeRecord(const File& file, uint64_t offset, std::string_view payload,
                             PointBatch& batch) {
  EventView event;
  if (!ReadEvent(payload, event) || event.kind != EventView::Kind::kSummary) return;
  uint64_t seq = offset;  // a value takes more than a byte of its record
  SummaryValue value;
  TagKinds& kinds = kinds_[file.run];
  while (TakeValue(event.body, value)) {
    ++seq;
    if (kinds.KindOf(value) != "scalars" || value.tag.empty()) continue;
    const auto number = ScalarOf(value);
    if (!number) continue;
    if (value.tag.size() > kLongestName) {
      problems_.push_back(fmt::format("{}: a tag of {} bytes is too long for a metric's name",
                                      Printable(file.run), value.tag.size()));
      continue;
    }
    batch.items.push_back({seq, {std::string(value.tag), event.step, WallNs(event.wall_time), *number}});
  }
}

Status EventSource::Read(const std::string& path, File& file, size_t most, const Take& take) {
  for (bool more = true; more;) {
    Run run{file.run, {}, 0, 0};
    PointBatch batch;
    batch.channel = file.channel;
    while (more && batch.items.size() < most) {
      auto read = file.reader.Poll(
          [&](uint64_t offset, std::string_view payload) {
            TakeRecord(file, offset, payload, batch);
          },
          kPiece);
      if (!read) return Fail(std::move(read).error());
      more = *read;
    }
    for (; file.damage < file.reader.damage().size(); ++file.damage) {
      problems_.push_back(fmt::format("{} is damaged at byte {}: what is there was passed over",
                                      Printable(path), file.reader.damage()[file.damage].offset));
    }
    if (batch.items.empty()) continue;
    Times& times = times_[file.run];
    if (times.first_ms == 0) times.first_ms = batch.items.front().point.wall_ns / 1'000'000;
    for (const auto& item : batch.items) {
      times.last_ms = std::max(times.last_ms, item.point.wall_ns / 1'000'000);
    }
    run.first_ms = times.first_ms;
    run.last_ms = times.last_ms;
    run.points.push_back(std::move(batch));
    ATHANOR_CHECK_OK(take(run));
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
