// Loads the runs below a folder as TensorBoard would show them: each folder that contains event
// files is a run, named by its path below the root; the files of a run are read in the order of
// their names. Every point of every scalar is kept, in columns. Other kinds of values, and graphs,
// are only counted: their bytes stay in the files.
//
// Checksums are verified. A torn tail and damage lose only what they contain; they are reported and
// are not an error. Runs are loaded in parallel; the result does not depend on that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "eventfile/event_reader.h"

namespace athanor {

struct ScalarColumn {
  std::string tag;
  // In the order of the files.
  std::vector<int64_t> steps;
  std::vector<double> wall_times;  // seconds
  std::vector<double> values;
  bool in_order = true;  // steps rise strictly

  size_t size() const { return steps.size(); }
};

struct LoadedFile {
  std::string name;
  uint64_t bytes = 0;
  uint64_t torn = 0;  // bytes of a tail that is not a complete record
  std::vector<EventDamage> damage;
};

struct LoadedRun {
  std::string name;  // "." for the root itself
  std::vector<LoadedFile> files;
  std::vector<ScalarColumn> scalars;       // in the order of first appearance
  std::map<std::string, uint64_t> others;  // values by kind: "histograms": 12; "graph": 1
  uint64_t records = 0;
  uint64_t unreadable = 0;  // records whose bytes are complete but are not an event
};

// In order of name. `threads` 0: one per processor. kNotFound: no such folder. Links are not
// followed.
Result<std::vector<LoadedRun>> LoadRuns(const std::string& dir, unsigned threads = 0);

// Indices of the points that count, by increasing step. Of several points of one step, the last one
// written counts. A step that goes back to s removes all points at s and beyond, as a resumed
// script means it.
std::vector<size_t> PointsThatCount(const ScalarColumn& column);

}  // namespace athanor
