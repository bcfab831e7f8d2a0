// A sample of a data channel: a folder of the same shape with some of its files, for a run that
// only checks whether everything works.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace athanor {

struct SampleLimits {
  uint64_t files = 64;
  uint64_t bytes = 64ull << 20;
};

struct Sample {
  uint64_t files = 0;  // taken
  uint64_t bytes = 0;
  uint64_t all_files = 0;  // there are
  uint64_t all_bytes = 0;
  // Share of all bytes; 1 if everything was taken.
  double fraction() const {
    return all_bytes == 0 || files == all_files
               ? 1.0
               : static_cast<double>(bytes) / static_cast<double>(all_bytes);
  }
};

// Takes files from every folder in turn, in the order of their names, until a limit is exceeded; at
// least one is taken, and none is cut. They are linked if the file system allows it, so `to` must
// not be written to. A `from` that is a file is taken completely. Links stay links.
Result<Sample> TakeSample(const std::string& from, const std::string& to,
                          const SampleLimits& limits);

}  // namespace athanor
