// ProjectorKeeper stores the embeddings of a run, which SummaryWriters put next to their event
// files: the config, and the tables that it names, at the same paths in the run: numbers as links,
// texts as copies without secrets. Not for two threads at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "run/ship/exit_gate.h"

namespace athanor {

class ProjectorKeeper {
 public:
  ProjectorKeeper(std::string keep_dir, const ExitGate& gate);

  // `config` is a path below the open folder `root`. Does nothing if it is unchanged since it was
  // stored last. A table that is named before it exists is stored when the config changes, or at
  // the next call.
  Status Keep(int root, const std::string& config, const std::string& sub_run);

 private:
  using Stamp = std::pair<int64_t, int64_t>;  // time and size

  const std::string keep_dir_;
  const ExitGate& gate_;
  std::map<std::string, Stamp> kept_;  // by config
};

}  // namespace athanor
