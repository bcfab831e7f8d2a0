// Sizes and checksums of the artifacts of runs, so that damage is noticed. Artifacts are plain
// files beneath one folder. Next to those of a run, in the folder of the first two parts of their
// paths, one file (kArtifactSums) has a line for each stored artifact: size, sha256, path, and a
// checksum of the line. It only grows. A file that was replaced has two lines, and after a kill
// between the line and the file the older line is right. So any line of a path may be the true one.
//
// If a power cut loses a line, nothing is known about that artifact; this is not reported as
// damage.
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

// Where the line of the artifact at `path` (beneath the folder of all artifacts) is stored; this is
// beneath it, too.
std::string ArtifactSumsPath(std::string_view path);

// Adds a line. `root_fd`: the folder of all artifacts, in which the artifact's own folder exists.
Status NoteArtifact(int root_fd, const std::string& path, const ArtifactSum& sum);
// The same for the bytes of the file `name` in `dir_fd`, which is about to become that artifact.
Status NoteArtifactFile(int root_fd, const std::string& path, int dir_fd, const std::string& name);

struct ArtifactSums {
  std::map<std::string, std::vector<ArtifactSum>> by_path;  // oldest first
  uint64_t damaged = 0;  // damaged lines; a torn last line does not count
};
// Any text may be given.
ArtifactSums ReadArtifactSums(std::string_view text);

}  // namespace athanor
