// CompleteStates decides, from scans of a checkpoint directory, which states of it were complete:
// every file unchanged in two scans and not open for writing, all at one moment. A file that is
// replaced all the time (written under another name, then renamed) is complete at any moment: after
// a while it is accepted as it is. Scans and times come from the caller. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "run/checkpoint/folder_scan.h"

namespace athanor {

using Snapshot = std::map<std::string, ScannedFile>;

// Whether two states differ only in journals.
bool SameButJournals(const Snapshot& a, const Snapshot& b);

class CompleteStates {
 public:
  // Which of these files a process has open for writing.
  using Writers = std::function<std::vector<FileKey>(std::vector<FileKey>)>;

  CompleteStates(Millis settle, Millis patience) : settle_(settle), patience_(patience) {}

  void Observe(const Snapshot& files, Millis now);
  // The state of the last Observe, if it is complete. Files that are not at rest are left out if
  // they are journals or if the patience is over; otherwise there is no complete state now. `told`:
  // when the script reported that a save had ended: what did not change since needs no second scan,
  // and new names that came later belong to the next save. `kept`: the last state kept.
  std::optional<Snapshot> WholeState(Millis now, std::optional<WallTime> told, const Snapshot& kept,
                                     const Writers& writers);
  // The state that the script reported, from the last Observe; for when no process is left to ask.
  // None if one of its files has changed since, or was open for writing at the last check.
  std::optional<Snapshot> ToldState(WallTime told, const Snapshot& kept) const;

  // When the writing of this file began, as far as was seen; 0: unknown.
  int64_t began_ns(const std::string& name) const;
  // Those that changed recently and were not part of a complete state since.
  std::map<std::string, FileKey> restless() const;
  // Names that were left out because the patience was over; for a note.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Track {
    ScannedFile file;
    Millis since{0};  // first seen so
    int64_t began_ns = 0;
    std::optional<Millis> busy_since;
    bool open = false;      // for writing, when last asked
    bool replaced = false;  // by another file of the same name, when it last changed
  };
  bool Excused(const std::string& name, const Track& track, Millis now);
  bool WholeByRename(const Track& track, Millis now) const;

  const Millis settle_;
  const Millis patience_;
  std::map<std::string, Track> tracks_;
  std::optional<Snapshot> asked_;  // last state in which no file was open for writing
  std::vector<std::string> left_out_;
};

}  // namespace athanor
