#include "run/checkpoint/complete_states.h"

#include <algorithm>

#include "base/io/files.h"

namespace athanor {
namespace {

bool IsJournal(const std::string& name) { return IsJournalName(BaseName(name)); }

// The kernel stamps files by a clock that may be late by this much: a file that was made after a
// moment may look older.
constexpr int64_t kCoarseMs = 15;

// How long to wait for a file that is replaced more often than it rests.
constexpr Millis kReplacedWait{3'000};

bool ChangedAfter(const ScannedFile& file, WallTime told) {
  return file.stamp.ctime_ns / 1'000'000 > told.ms;
}

}  // namespace

bool SameButJournals(const Snapshot& a, const Snapshot& b) {
  auto x = a.begin();
  auto y = b.begin();
  for (;;) {
    while (x != a.end() && IsJournal(x->first)) ++x;
    while (y != b.end() && IsJournal(y->first)) ++y;
    if (x == a.end() || y == b.end()) return x == a.end() && y == b.end();
    if (*x != *y) return false;
    ++x;
    ++y;
  }
}

void CompleteStates::Observe(const Snapshot& files, Millis now) {
  for (auto track = tracks_.begin(); track != tracks_.end();) {
    track = files.count(track->first) > 0 ? std::next(track) : tracks_.erase(track);
  }
  for (const auto& [name, file] : files) {
    auto [found, fresh] = tracks_.try_emplace(name);
    Track& track = found->second;
    if (!fresh && track.file == file) continue;
    const bool other = fresh || track.file.stamp.inode != file.stamp.inode;
    if (!track.busy_since) {
      // The first change after a rest; for a new file its creation, also under another name.
      track.began_ns = other && file.born_ns > 0 ? file.born_ns : file.stamp.mtime_ns;
      track.busy_since = now;
    }
    track.replaced = !fresh && (other || track.file.born_ns != file.born_ns);
    track.file = file;
    track.since = now;
  }
}

bool CompleteStates::Excused(const std::string& name, const Track& track, Millis now) {
  if (IsJournal(name)) return true;
  if (!track.busy_since || now - *track.busy_since < patience_) return false;
  if (std::find(left_out_.begin(), left_out_.end(), name) == left_out_.end()) {
    left_out_.push_back(name);
  }
  return true;
}

std::optional<Snapshot> CompleteStates::WholeState(Millis now, std::optional<WallTime> told,
                                                   const Snapshot& kept, const Writers& writers) {
  Snapshot whole;
  std::vector<const std::pair<const std::string, Track>*> waiting;
  for (const auto& entry : tracks_) {
    const auto& [name, track] = entry;
    const bool at_rest = now - track.since >= settle_ || (told && !ChangedAfter(track.file, *told));
    if (at_rest) {
      whole.emplace(name, track.file);
    } else if (!Excused(name, track, now)) {
      waiting.push_back(&entry);
    }
  }
  // For two such files it is unknown whether they belong to the same save.
  if (waiting.size() == 1 && !told && WholeByRename(waiting[0]->second, now)) {
    whole.emplace(waiting[0]->first, waiting[0]->second.file);
    waiting.clear();
  }
  if (!waiting.empty()) {
    auto state = told ? ToldState(*told, kept) : std::nullopt;
    if (!state) return std::nullopt;
    whole = std::move(*state);
  }
  if (asked_ && *asked_ == whole) return whole;
  std::vector<FileKey> keys;
  for (const auto& [name, file] : whole) keys.emplace_back(file.stamp.device, file.stamp.inode);
  const auto open = keys.empty() ? keys : writers(std::move(keys));
  for (auto file = whole.begin(); file != whole.end();) {
    Track& track = tracks_[file->first];
    const FileKey key{file->second.stamp.device, file->second.stamp.inode};
    track.open = std::find(open.begin(), open.end(), key) != open.end();
    if (!track.open) {
      ++file;
      continue;
    }
    if (!track.busy_since) track.busy_since = now;
    if (!Excused(file->first, track, now)) return std::nullopt;
    file = whole.erase(file);
  }
  for (const auto& [name, file] : whole) tracks_[name].busy_since.reset();
  // While a process still writes to a journal, the answer may be different next time.
  if (open.empty()) asked_ = whole;
  return whole;
}

std::optional<Snapshot> CompleteStates::ToldState(WallTime told, const Snapshot& kept) const {
  Snapshot state;
  for (const auto& [name, track] : tracks_) {
    const bool next_save = track.open && track.file.born_ns >= (told.ms - kCoarseMs) * 1'000'000;
    if (!ChangedAfter(track.file, told) && !next_save) {
      if (track.open && !IsJournal(name)) return std::nullopt;  // it never was whole
      state.emplace(name, track.file);
    } else if (kept.count(name) > 0 && !IsJournal(name)) {
      return std::nullopt;
    }
  }
  return state;
}

bool CompleteStates::WholeByRename(const Track& track, Millis now) const {
  return track.replaced && track.busy_since && now - *track.busy_since >= kReplacedWait;
}

std::map<std::string, FileKey> CompleteStates::restless() const {
  std::map<std::string, FileKey> names;
  for (const auto& [name, track] : tracks_) {
    if (!track.busy_since || IsJournal(name)) continue;
    names[name] = {track.file.stamp.device, track.file.stamp.inode};
  }
  return names;
}

int64_t CompleteStates::began_ns(const std::string& name) const {
  const auto track = tracks_.find(name);
  return track == tracks_.end() ? 0 : track->second.began_ns;
}

}  // namespace athanor
