// What is known of the bytes of runs' artifacts, so that damage to them is noticed. Artifacts lie
// as plain files beneath one folder; beside those of a run, in the folder of the first two parts of
// their paths, one file (kArtifactSums) has a line for each that was kept: size, sha256, path, and
// a checksum of the line. It only grows. A file replaced has two lines, and a kill between the line
// and the file leaves the older one right, so any line of a path may be the true one.
//
// A line that is lost in a power cut leaves an artifact that nothing is known of; it is no finding.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

inline constexpr std::string_view kArtifactSums = ".athanor-sums";

struct ArtifactSum {
  uint64_t size = 0;
  std::string sha256;  // hex
  bool operator==(const ArtifactSum&) const = default;
};

// Where the line of the artifact at `path` (beneath the folder of all) is kept; beneath it, too.
std::string ArtifactSumsPath(std::string_view path);

// Adds a line. `root_fd`: the folder of all artifacts, in which the artifact's own folder is there.
Status NoteArtifact(int root_fd, const std::string& path, const ArtifactSum& sum);
// The same for the bytes of the file `name` in `dir_fd`, which is about to become that artifact.
Status NoteArtifactFile(int root_fd, const std::string& path, int dir_fd, const std::string& name);

struct ArtifactSums {
  std::map<std::string, std::vector<ArtifactSum>> by_path;  // oldest first
  uint64_t damaged = 0;  // lines that are not as they were written; a torn last one is none
};
// Any text may be given.
ArtifactSums ReadArtifactSums(std::string_view text);

}  // namespace athanor
