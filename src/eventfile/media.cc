#include "eventfile/media.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"
#include "eventfile/event_reader.h"

namespace athanor {
namespace {

constexpr size_t kDeepest = 16;
constexpr uint64_t kMostRecord = 256 << 20;
constexpr std::string_view kAbandoned = "abandoned";

std::string_view KindName(std::string_view plugin) {
  if (plugin == "scalars") return "";
  if (plugin == "histograms") return "histogram";
  if (plugin == "images") return "image";
  if (plugin == "pr_curves") return "pr_curve";
  if (plugin == "audio" || plugin == "text" || plugin == "hparams") return plugin;
  return plugin.empty() ? "" : "tensor";
}

struct Place {
  int64_t step = 0;
  int64_t wall_ms = 0;
  uint64_t offset = 0;
  uint32_t ordinal = 0;
  uint32_t file = 0;
};

struct SeenFile {
  std::string path;    // below the folder
  std::string prefix;  // of its tags: its sub-run
  std::string hash;    // of the path
  ino_t inode = 0;
  std::unique_ptr<EventReader> reader;
  TagKinds kinds;
};

tl::unexpected<Error> Gone() {
  return Fail(Error{ErrorCode::kNotFound, "the run's event files do not hold this any more",
                    "reload the page"}
                  .Id("ATH-R0042"));
}

// Every event file below `dir_fd`, as paths; links and abandoned files are skipped.
void FindFiles(int dir_fd, const std::string& prefix, size_t depth,
               std::vector<std::string>& found) {
  auto names = ListDirAt(dir_fd);
  if (!names || depth > kDeepest) return;
  std::sort(names->begin(), names->end());
  for (const auto& name : *names) {
    struct stat info {};
    if (::fstatat(dir_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(info.st_mode) && name.find("tfevents") != std::string::npos) {
      found.push_back(prefix + name);
    }
    if (!S_ISDIR(info.st_mode) || (depth == 0 && name == kAbandoned)) continue;
    if (auto inner = OpenBeneath(dir_fd, name, O_RDONLY | O_DIRECTORY)) {
      FindFiles(inner->get(), prefix + name + "/", depth + 1, found);
    }
  }
}

int64_t Milliseconds(double seconds) {
  return std::isfinite(seconds) && std::abs(seconds) < 1e12
             ? static_cast<int64_t>(std::llround(seconds * 1000))
             : 0;
}

}  // namespace

bool MediaRecord::Value(EventView& event, SummaryValue& value) const {
  if (!ReadEvent(payload, event) || event.kind != EventView::Kind::kSummary) return false;
  std::string_view summary = event.body;
  for (uint32_t i = 0; TakeValue(summary, value); ++i) {
    if (i == ordinal) return true;
  }
  return false;
}

struct MediaBook::Folder {
  using Key = std::pair<std::string, std::string>;  // kind, name

  std::string dir;
  Mutex mutex;  // guards what follows
  std::vector<std::unique_ptr<SeenFile>> files GUARDED_BY(mutex);
  std::map<Key, std::vector<Place>, std::less<>> series GUARDED_BY(mutex);

  Status Refresh() REQUIRES(mutex);
  void Take(SeenFile& file, uint32_t number, uint64_t offset, std::string_view payload)
      REQUIRES(mutex);
  void Forget() REQUIRES(mutex) {
    files.clear();
    series.clear();
  }
  bool StillThose(int dir_fd, const std::vector<std::string>& paths) const REQUIRES(mutex);
};

// A file that was replaced (what a later attempt did again was taken out) is another one.
bool MediaBook::Folder::StillThose(int dir_fd, const std::vector<std::string>& paths) const {
  return std::all_of(files.begin(), files.end(), [&](const auto& file) {
    struct stat info {};
    return std::find(paths.begin(), paths.end(), file->path) != paths.end() &&
           ::fstatat(dir_fd, file->path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           info.st_ino == file->inode;
  });
}

Status MediaBook::Folder::Refresh() {
  auto dir_fd = OpenDir(dir);
  if (!dir_fd) {
    Forget();
    return dir_fd.error().code == ErrorCode::kNotFound ? Ok() : Status(Fail(dir_fd.error()));
  }
  std::vector<std::string> paths;
  FindFiles(dir_fd->get(), "", 0, paths);
  if (!StillThose(dir_fd->get(), paths)) Forget();
  for (const auto& path : paths) {
    const auto known = std::any_of(files.begin(), files.end(),
                                   [&](const auto& file) { return file->path == path; });
    if (known) continue;
    auto fd = OpenBeneath(dir_fd->get(), path, O_RDONLY | O_NONBLOCK);
    struct stat info {};
    if (!fd || ::fstat(fd->get(), &info) != 0) continue;
    auto file = std::make_unique<SeenFile>();
    file->path = path;
    file->prefix = path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
    file->hash = Sha256Hex(path).substr(0, 12);
    file->inode = info.st_ino;
    file->reader = std::make_unique<EventReader>(std::move(*fd), kMostRecord);
    files.push_back(std::move(file));
  }
  for (size_t i = 0; i < files.size(); ++i) {
    SeenFile& file = *files[i];
    auto read = file.reader->Poll([&](uint64_t offset, std::string_view payload) REQUIRES(mutex) {
      Take(file, static_cast<uint32_t>(i), offset, payload);
    });
    if (!read) return Fail(read.error());
  }
  return Ok();
}

void MediaBook::Folder::Take(SeenFile& file, uint32_t number, uint64_t offset,
                             std::string_view payload) {
  EventView event;
  if (!ReadEvent(payload, event)) return;
  Place place{event.step, Milliseconds(event.wall_time), offset, 0, number};
  if (event.kind == EventView::Kind::kGraph) {
    series[{"graph", file.prefix + "graph"}].push_back(place);
    return;
  }
  if (event.kind != EventView::Kind::kSummary) return;
  std::string_view summary = event.body;
  SummaryValue value;
  for (uint32_t i = 0; TakeValue(summary, value); ++i) {
    const auto kind = KindName(file.kinds.KindOf(value));
    if (kind.empty()) continue;
    place.ordinal = i;
    series[{std::string(kind), file.prefix + std::string(value.tag)}].push_back(place);
  }
}

MediaBook::MediaBook(size_t kept) : kept_(kept) {}
MediaBook::~MediaBook() = default;

std::shared_ptr<MediaBook::Folder> MediaBook::FolderOf(const std::string& dir) {
  const MutexLock lock(mutex_);
  const auto at = std::find_if(used_.begin(), used_.end(),
                               [&](const auto& folder) { return folder->dir == dir; });
  if (at != used_.end()) {
    used_.splice(used_.begin(), used_, at);
    return used_.front();
  }
  auto folder = std::make_shared<Folder>();
  folder->dir = dir;
  used_.push_front(folder);
  if (used_.size() > kept_) used_.pop_back();
  return folder;
}

Result<std::vector<MediaSeries>> MediaBook::List(const std::string& dir) {
  const auto folder = FolderOf(dir);
  const MutexLock lock(folder->mutex);
  ATHANOR_CHECK_OK(folder->Refresh());
  std::vector<MediaSeries> all;
  for (const auto& [key, places] : folder->series) {
    const auto last =
        std::max_element(places.begin(), places.end(),
                         [](const Place& a, const Place& b) { return a.step < b.step; });
    all.push_back({key.first, key.second, places.size(), last->step});
  }
  return all;
}

Result<std::vector<MediaItem>> MediaBook::Items(const std::string& dir, std::string_view kind,
                                                std::string_view name, size_t most) {
  const auto folder = FolderOf(dir);
  const MutexLock lock(folder->mutex);
  ATHANOR_CHECK_OK(folder->Refresh());
  const auto at = folder->series.find(Folder::Key(kind, name));
  if (at == folder->series.end()) return Gone();
  std::vector<Place> places = at->second;
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.step < b.step; });
  std::vector<MediaItem> items;
  const size_t shown = std::min(std::max<size_t>(most, 1), places.size());
  for (size_t i = 0; i < shown; ++i) {
    const size_t from = shown == 1 ? places.size() - 1 : i * (places.size() - 1) / (shown - 1);
    const Place& place = places[from];
    items.push_back({folder->files[place.file]->hash + "-" + std::to_string(place.offset) + "-" +
                         std::to_string(place.ordinal),
                     place.step, place.wall_ms});
  }
  return items;
}

Result<MediaRecord> MediaBook::Read(const std::string& dir, std::string_view key) {
  const auto parts = Split(key, '-');
  uint64_t offset = 0;
  MediaRecord record;
  const auto number = [](const std::string& text, auto& value) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
  };
  if (parts.size() != 3 || !number(parts[1], offset) || !number(parts[2], record.ordinal)) {
    return Gone();
  }
  const auto folder = FolderOf(dir);
  const MutexLock lock(folder->mutex);
  if (folder->files.empty()) ATHANOR_CHECK_OK(folder->Refresh());
  const auto at = std::find_if(folder->files.begin(), folder->files.end(),
                               [&](const auto& file) { return file->hash == parts[0]; });
  // Only where a record was seen: nothing else of the file can be requested.
  if (at == folder->files.end() || offset >= (*at)->reader->offset()) return Gone();
  std::string bytes(12, '\0');
  const int fd = (*at)->reader->fd();
  const auto fill = [&] {
    const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    return n == static_cast<ssize_t>(bytes.size());
  };
  if (!fill()) return Gone();
  const auto needed = ReadTfRecord(bytes);
  if (needed.state != TfRecord::State::kTorn || needed.size > kMostRecord) return Gone();
  bytes.resize(needed.size);
  if (!fill()) return Gone();
  const auto whole = ReadTfRecord(bytes);
  if (whole.state != TfRecord::State::kWhole) return Gone();
  record.payload = std::string(whole.payload);
  return record;
}

}  // namespace athanor
