// RestWatch decides, from looks at a checkpoint directory, which states of it were whole:
// every file the same over two looks and open for writing by nobody, all at one moment. One
// file that is replaced all the time (written under another name, then renamed) is whole at any
// moment: after a while it is taken as it is. Looks and times come from the caller. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "run/checkpoint/folder_scan.h"

namespace athanor {

using Snapshot = std::map<std::string, ScannedFile>;

// Whether two states differ in nothing but journals.
bool SameButJournals(const Snapshot& a, const Snapshot& b);

class RestWatch {
 public:
  // Which of these files somebody has open for writing.
  using Writers = std::function<std::vector<FileKey>(std::vector<FileKey>)>;

  RestWatch(Millis settle, Millis patience) : settle_(settle), patience_(patience) {}

  void Observe(const Snapshot& files, Millis now);
  // The state of the last Observe, if it is whole. Files not at rest are left out when they
  // are journals or out of patience; otherwise there is no whole state now. `told`: when the
  // script said that a save had ended: what did not change since needs no second look, and
  // new names that came later belong to the next save. `kept`: the last state kept.
  std::optional<Snapshot> WholeState(Millis now, std::optional<WallTime> told,
                                     const Snapshot& kept, const Writers& writers);
  // The state the script told of, from the last Observe; for when nobody is left to ask. Nothing
  // when a file of it has changed since, or was open for writing when last asked.
  std::optional<Snapshot> ToldState(WallTime told, const Snapshot& kept) const;

  // When the writing of this file began, as far as could be seen; 0: not known.
  int64_t began_ns(const std::string& name) const;
  // Those that changed lately and were not part of a whole state since.
  std::map<std::string, FileKey> restless() const;
  // Names left out for want of patience; for a note.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Track {
    ScannedFile file;
    Millis since{0};  // first seen so
    int64_t began_ns = 0;
    std::optional<Millis> busy_since;
    bool open = false;  // for writing, when last asked
    bool replaced = false;  // by another file of the same name, when it last changed
  };
  bool Excused(const std::string& name, const Track& track, Millis now);
  bool WholeByRename(const Track& track, Millis now) const;

  const Millis settle_;
  const Millis patience_;
  std::map<std::string, Track> tracks_;
  std::optional<Snapshot> asked_;  // last state of which nobody had a file open
  std::vector<std::string> left_out_;
};

}  // namespace athanor
