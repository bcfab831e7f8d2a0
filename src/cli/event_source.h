// Event files in a folder that other programs write to: which runs are in it, and their scalars as
// they arrive. Each folder with event files is a run, named by its path below the root.
//
// A point is numbered by its position in its file, and a file by its name: reading the same folder
// again makes the same numbers, so that a store that knows them drops them.
//
// Links inside the folder are not followed. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "record/series/series_frames.h"

namespace athanor {

class EventSource {
 public:
  // kNotFound: no such folder.
  static Result<EventSource> Open(std::string root);

  struct Run {
    std::string name;      // "." for the root itself
    std::string frames;    // for SeriesStore::AppendFrames
    uint64_t points = 0;   // in them
    int64_t first_ms = 0;  // of the first point that was ever read; 0: none yet
    int64_t last_ms = 0;
  };
  // Looks for new files, then reads all that is new, about `most` points of one run at a time. An
  // error of `take` ends it; this object does not return the points that it was given again.
  using Take = std::function<Status(Run run)>;
  Status Poll(size_t most, const Take& take);
  // A file was replaced by another of the same name: it is read from its beginning.
  void Again(const std::string& path);  // below the root
  // What was skipped, for a person; each once.
  std::vector<std::string> TakeProblems() { return std::exchange(problems_, {}); }
  size_t files() const { return files_.size(); }

 private:
  // What is known about a run, whichever of its files is read.
  struct Known {
    TagKinds kinds;
    int64_t first_ms = 0;
    int64_t last_ms = 0;
  };
  struct File {
    std::string run;
    uint32_t channel = 0;
    EventReader reader;
    Known& known;
    size_t damage = 0;
  };

  explicit EventSource(std::string root) : root_(std::move(root)) {}
  void Look(const std::string& folder);
  Status Read(const std::string& path, File& file, size_t most, const Take& take);
  void TakeRecord(const File& file, uint64_t offset, std::string_view payload, FrameMaker& made);

  std::string root_;
  std::map<std::string, Known> runs_;                   // by name; its entries stay where they are
  std::map<std::string, std::unique_ptr<File>> files_;  // by path below the root
  std::vector<std::string> problems_;
};

}  // namespace athanor
