// A requirements file as far as a cache must understand it: which text decides what gets installed.
// Only the installer knows what the lines mean.
#pragma once

#include <string>

#include "base/result.h"

namespace athanor {

struct Requirements {
  // Without comments and blank lines, continued lines joined, and every file of the source that is
  // named by -r, -c or as a package inserted.
  std::string text;
  // A folder of the source is installed, so any change of the source matters.
  bool whole_source = false;
};

// `source_dir_fd` is the folder the installer runs in. kInvalid, with `where`: a line
// names a file outside the source or installs in place (-e), which a cached
// environment cannot; too many files, or too much text. kNotFound: no such file.
Result<Requirements> ReadRequirements(int source_dir_fd, const std::string& file);
// The same for a conda file: its text, and the files that its pip section names.
Result<Requirements> ReadCondaFile(int source_dir_fd, const std::string& file);

}  // namespace athanor
