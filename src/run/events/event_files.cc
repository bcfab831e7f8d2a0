#include "run/events/event_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/event_writer.h"
#include "eventfile/projector.h"
#include "record/series/series_file.h"
#include "run/events/event_copy.h"

namespace athanor {
namespace {

constexpr Millis kLookEvery{1'000};
constexpr int kLookShare = 50;  // a look may take one part in so many of the time
constexpr Millis kSettleEvery{5'000};
constexpr Millis kTryAgain{1'000};
constexpr int kTriesAtTheEnd = 3;
constexpr size_t kMostEventFiles = 2'000;
constexpr size_t kMaxEntries = 100'000;  // of one look
constexpr int kMaxDepth = 16;
constexpr uint64_t kLongest = 64u << 20;  // no scalar is in a longer record
constexpr uint64_t kPiece = 512u << 10;   // of one file before the next has its turn

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool Before(const timespec& a, const timespec& b) {
  return std::tie(a.tv_sec, a.tv_nsec) < std::tie(b.tv_sec, b.tv_nsec);
}

// The event files below an open folder, without following links.
class Finder {
 public:
  explicit Finder(const timespec& since) : since_(since) {}

  void Walk(UniqueFd folder, const std::string& path, int depth) {
    const int fd = folder.get();
    DIR* dir = ::fdopendir(fd);
    if (dir == nullptr) return;
    (void)folder.release();  // closedir's now
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (++entries_ > kMaxEntries) break;
      if (name == "." || name == ".." || Skipped(name, depth)) continue;
      const bool config = name == kProjectorConfig;
      const bool may_be_file = config || IsEventFileName(name);
      if (entry->d_type == DT_LNK || (entry->d_type == DT_REG && !may_be_file)) continue;
      struct stat info {};
      if (::fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const auto below = path.empty() ? name : path + "/" + name;
      if (S_ISREG(info.st_mode) && may_be_file && !Before(info.st_mtim, since_)) {
        (config ? configs : found).push_back(below);
      } else if (S_ISDIR(info.st_mode) && depth < kMaxDepth) {
        UniqueFd next(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (next) Walk(std::move(next), below, depth + 1);
      }
    }
    ::closedir(dir);
  }

  std::vector<std::string> found;
  std::vector<std::string> configs;  // of embeddings, which are next to event files

 private:
  static bool Skipped(const std::string& name, int depth) {
    if (depth == 0) return name == "input" || name == ".athanor" || EndsWith(name, ".work");
    return name == ".git" || name == "__pycache__" || name == "node_modules";
  }

  timespec since_;
  size_t entries_ = 0;
};

// "events.out.tfevents.1731725157.host.…": writers put the time there.
int64_t TimeInName(const std::string& path) {
  const auto at = path.rfind("tfevents.");
  return at == std::string::npos ? 0 : std::strtoll(path.c_str() + at + 9, nullptr, 10);
}

bool IsTime(const std::string& name) {
  return name.size() >= 10 && name.find_first_not_of("0123456789.") == std::string::npos;
}

bool IsSplit(const std::string& name) {
  for (const char* known :
       {"train", "training", "val", "valid", "validation", "eval", "test", "dev"}) {
    if (ToLower(name) == known) return true;
  }
  return false;
}

std::string FolderOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

struct EventFiles::File {
  uint32_t number = 0;
  std::string path;
  std::string sub_run;
  EventReader reader;
  TagKinds kinds;
  size_t damage = 0;
  std::unique_ptr<EventCopy> copy;
  bool is_new = false;  // numbered by this agent
  uint64_t told = 0;    // the last number of a value
  bool broken = false;
  Millis try_again{0};  // not before, on a server that refused
  int failed = 0;       // since the script's end
};

EventFiles::EventFiles(Options options)
    : options_(std::move(options)),
      gate_(options_.secrets),
      keeper_(*options_.files, options_.folder, options_.attempt, options_.scratch_dir),
      projector_({*options_.files, options_.folder, options_.local_dir, options_.scratch_dir},
                 gate_),
      queue_(options_.local_dir.empty()) {
  LoadIndex();
}

EventFiles::~EventFiles() = default;

std::string EventFiles::SubRunOf(const std::string& folder,
                                 const std::map<std::string, std::string>& known) {
  // The nearest folder above that has event files.
  for (auto above = folder; !above.empty();) {
    const auto slash = above.rfind('/');
    above = slash == std::string::npos ? std::string() : above.substr(0, slash);
    const auto at = known.find(above);
    if (at == known.end()) continue;
    auto name = at->second;
    for (const auto& part : Split(folder.substr(above.empty() ? 0 : above.size() + 1), '/')) {
      if (!IsTime(part)) name += (name.empty() ? "" : "/") + part;
    }
    return name;
  }
  auto own = BaseName(folder);
  if (IsSplit(own)) return own;
  const auto taken = [&](const std::string& name) {
    return std::any_of(known.begin(), known.end(), [&](const auto& k) { return k.second == name; });
  };
  if (!taken("")) return "";
  auto name = own == "abandoned" ? "_abandoned" : own;
  for (int i = 2; taken(name); ++i) name = fmt::format("{}-{}", own, i);
  return name;
}

// Lines of "<sub-run>\t<path>", in the order of their numbers.
void EventFiles::LoadIndex() {
  const auto text = ReadFile(options_.index);
  if (!text) return;
  for (const auto& line : Split(*text, '\n')) {
    const auto tab = line.find('\t');
    if (tab == std::string::npos) continue;
    const auto path = line.substr(tab + 1);
    numbers_.emplace(path, static_cast<uint32_t>(numbers_.size()));
    sub_runs_.emplace(FolderOf(path), line.substr(0, tab));
  }
}

void EventFiles::Problem(const std::string& key, const std::string& text) {
  if (told_.emplace(key, true).second && options_.problem) options_.problem(text);
}

void EventFiles::Report(std::string key, std::string text) {
  const MutexLock lock(mutex_);
  reports_.emplace_back(std::move(key), std::move(text));
}

void EventFiles::TellReports() {
  decltype(reports_) reports;
  {
    const MutexLock lock(mutex_);
    reports.swap(reports_);
    first_steps_.PutBack(std::exchange(unsettled_, {}));
  }
  for (const auto& [key, text] : reports) Problem(key, text);
}

bool EventFiles::Look() {
  struct stat marker {};
  if (::stat(options_.marker.c_str(), &marker) != 0) return true;
  const auto root = options_.root.Open();
  auto walked = options_.root.Open();  // the walk closes it
  if (!root || !walked) return true;
  Finder finder(marker.st_mtim);
  finder.Walk(std::move(*walked), "", 0);
  // Numbered in the order in which they were made, as far as names tell.
  std::sort(finder.found.begin(), finder.found.end(), [](const auto& a, const auto& b) {
    const auto depth = [](const auto& path) { return std::count(path.begin(), path.end(), '/'); };
    return std::make_tuple(TimeInName(a), depth(a), std::string_view(a)) <
           std::make_tuple(TimeInName(b), depth(b), std::string_view(b));
  });
  for (const auto& path : finder.found) {
    const bool followed = std::any_of(files_.begin(), files_.end(),
                                      [&](const auto& file) { return file->path == path; });
    if (!followed) Follow(path);
  }
  return KeepEmbeddings(root->get(), finder.configs);
}

bool EventFiles::KeepEmbeddings(int root, const std::vector<std::string>& configs) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& path : configs) {
    // Its run is the one whose event files are next to it; until there is one, it waits.
    const auto sub_run = sub_runs_.find(FolderOf(path));
    if (sub_run != sub_runs_.end()) found.emplace_back(path, sub_run->second);
  }
  if (found.empty()) return true;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(keeps_embeddings_, true)) return false;
  }
  // The queue's task may come when the tree has another folder.
  const auto held = std::make_shared<UniqueFd>(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  queue_.Add([this, held, found = std::move(found)] {
    for (const auto& [path, sub_run] : found) {
      if (auto kept = projector_.Keep(held->get(), path, sub_run); !kept) {
        Report("projector", "embeddings are not kept: " + kept.error().what);
      }
    }
    const MutexLock lock(mutex_);
    keeps_embeddings_ = false;
  });
  return true;
}

void EventFiles::Follow(const std::string& path) {
  if (path.find_first_of("\t\n") != std::string::npos) return;
  if (files_.size() >= kMostEventFiles) {
    return Problem(
        "many", fmt::format("more than {} event files: the others are not read", kMostEventFiles));
  }
  auto root = options_.root.Open();
  if (!root) return;
  auto fd = OpenBeneath(root->get(), path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const auto folder = FolderOf(path);
  auto sub_run = sub_runs_.find(folder);
  if (sub_run == sub_runs_.end()) {
    sub_run = sub_runs_.emplace(folder, CleanName(SubRunOf(folder, sub_runs_))).first;
  }
  auto number = numbers_.find(path);
  const bool is_new = number == numbers_.end();
  if (is_new) {
    // On disk before anything is sent under this number.
    UniqueFd index(::open(options_.index.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    // After a line that was cut short, this one would be lost, too.
    if (!index || !WriteAll(index.get(), "\n" + sub_run->second + "\t" + path + "\n")) return;
    number = numbers_.emplace(path, static_cast<uint32_t>(numbers_.size())).first;
  }
  auto file = std::make_unique<File>(File{number->second,
                                          path,
                                          sub_run->second,
                                          EventReader(std::move(*fd), kLongest),
                                          {},
                                          0,
                                          nullptr,
                                          is_new,
                                          0,
                                          false,
                                          Millis(0),
                                          0});
  files_.push_back(std::move(file));
}

std::string EventFiles::CleanName(std::string name) const {
  if (gate_.ScrubText(name)) std::replace(name.begin(), name.end(), '*', '_');
  return name;
}

EventFiles::Kept EventFiles::Keep(File& file) {
  if (file.copy && file.copy->lost()) Again(file);
  if (!file.copy) {
    EventCopy::Options options{*options_.files, queue_, waiting_, {}, {}, file.is_new};
    options.place = [this, number = file.number, sub_run = file.sub_run,
                     name = CleanName(BaseName(file.path))] {
      return keeper_.PlaceFor(number, sub_run, name);
    };
    options.opened = [this] {
      if (auto first = std::exchange(options_.first_kept, nullptr)) first();
    };
    file.copy = std::make_unique<EventCopy>(std::move(options));
  }
  if (now_ < file.try_again) return Kept::kFailed;
  const auto ready = file.copy->Flush();
  if (ready) return *ready ? Kept::kReady : Kept::kLater;
  Problem("keep", "event files are not kept: " + ready.error().what);
  if (!is_elsewhere()) return Kept::kFailed;
  if (last_ && ++file.failed == kTriesAtTheEnd) file.broken = true;
  if (!last_) file.try_again = now_ + kTryAgain;
  return Kept::kFailed;
}

// From the beginning, as a new agent does it.
void EventFiles::Again(File& file) {
  UniqueFd same(::fcntl(file.reader.fd(), F_DUPFD_CLOEXEC, 0));
  if (!same) return;
  file.reader = EventReader(std::move(same), kLongest);
  file.kinds = {};
  file.damage = 0;
  file.is_new = false;
  file.copy.reset();
}

void EventFiles::Settle() {
  auto steps = first_steps_.Take();
  queue_.Add([this, steps = std::move(steps)] {
    auto settled = keeper_.Settle(steps);
    if (settled) return;
    Report("settle", "event files of earlier attempts are not parted: " + settled.error().what);
    const MutexLock lock(mutex_);
    for (const auto& [sub_run, cuts] : steps) unsettled_.insert(sub_run);
  });
}

void EventFiles::Take(File& file, uint64_t offset, std::string_view payload,
                      std::vector<Found>& found) {
  std::string clean(payload);
  if (gate_.ScrubMessage(clean)) payload = clean;
  file.copy->Add(payload);
  EventView event;
  if (!ReadEvent(payload, event) || event.kind != EventView::Kind::kSummary) return;
  // A value takes more than a byte of its record: places within it are numbers enough.
  uint64_t seq = offset;
  SummaryValue value;
  while (TakeValue(event.body, value)) {
    ++seq;
    const auto kind = file.kinds.KindOf(value);
    if (kind != "hparams" && options_.attempt > 1) {
      first_steps_.Saw(file.sub_run, value.tag, event.step);
    }
    if (kind != "scalars" || value.tag.empty() || seq <= file.told) continue;
    file.told = seq;
    const auto number = ScalarOf(value);
    if (!number) continue;
    Found one{file.number, seq, {}};
    one.point.name =
        file.sub_run.empty() ? std::string(value.tag) : file.sub_run + "/" + std::string(value.tag);
    if (one.point.name.size() > kMaxSeriesName) {
      Problem("long", fmt::format("{}: tags longer than {} bytes are kept in the file only",
                                  file.path, kMaxSeriesName));
      continue;
    }
    one.point.step = event.step;
    one.point.wall_ns = WallNs(event.wall_time);
    one.point.value = *number;
    found.push_back(std::move(one));
  }
}

bool EventFiles::Read(size_t most, std::vector<Found>& found) {
  bool more = false;
  for (auto& file : files_) {
    if (file->broken) continue;
    // What cannot be stored is not read further: it stays in the script's file until there is room.
    const auto kept = Keep(*file);
    more = more || kept == Kept::kLater;
    if (kept != Kept::kReady) {
      more = more || (last_ && is_elsewhere() && !file->broken);
      continue;
    }
    if (found.size() >= most) return true;
    auto read = file->reader.Poll(
        [&](uint64_t offset, std::string_view payload) { Take(*file, offset, payload, found); },
        kPiece);
    if (!read) {
      file->broken = true;
      Problem(file->path, file->path + " is not read any further: " + read.error().what);
      continue;
    }
    more = more || *read;
    (void)Keep(*file);
    if (file->reader.damage().size() > file->damage) {
      const auto& damage = file->reader.damage()[file->damage];
      file->damage = file->reader.damage().size();
      Problem(file->path, fmt::format("{} is damaged at byte {}: what is there was passed over",
                                      file->path, damage.offset));
    }
  }
  return more;
}

void EventFiles::Poll(Millis now, bool last, size_t most, std::vector<Found>& found) {
  if (finished_) return;
  now_ = now;
  last_ = last;
  TellReports();
  if (now >= next_look_ || (last && !looked_last_)) {
    const auto begun = NowNs();
    const bool all = Look();
    const Millis took((NowNs() - begun) / 1'000'000);
    next_look_ = now + std::max(kLookEvery, kLookShare * took);
    looked_last_ = last && all;
  }
  const bool more = Read(most, found);
  const bool end = last && !more;
  if (first_steps_.changed() && (end ? !settled_last_ : now >= next_settle_)) {
    next_settle_ = now + kSettleEvery;
    settled_last_ = end;
    Settle();
  }
  TellReports();
  // Asked after everything was read and given to it.
  finished_ = end && looked_last_ && queue_.idle();
}

}  // namespace athanor
