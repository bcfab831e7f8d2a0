// What git says about the source folder. It is optional: no git, no repository, a slow or broken
// one all give less information, not an error.
#pragma once

#include <chrono>
#include <string>

namespace athanor {

struct GitFacts {
  std::string commit;  // empty: no repository, or nothing committed yet
  std::string branch;  // empty when detached
  std::string diff;    // uncommitted changes of tracked files in the folder; empty when clean
  bool dirty = false;
  std::string note;  // why something is missing, for a person
};

inline constexpr size_t kGitDiffLimit = 5u << 20;

// Runs git twice at most, each for at most `limit`, with hooks, file-system monitors
// and external diff programs off and no lock taken.
GitFacts ReadGitFacts(const std::string& dir,
                      std::chrono::milliseconds limit = std::chrono::seconds(2));

}  // namespace athanor
