// ProjectorKeeper stores the embeddings of a run, which SummaryWriters put next to their event
// files: the config, and the tables that it names, at the same paths in the run: numbers as they
// are (as links, where that is possible), texts as copies without secrets. Not for two threads at
// once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "link/job_files.h"
#include "run/ship/exit_gate.h"

namespace athanor {

class ProjectorKeeper {
 public:
  struct Options {
    JobFiles& files;
    std::string folder;       // of entries
    std::string local_dir;    // the same on this machine; empty: it is elsewhere
    std::string scratch_dir;  // copies are made here
  };
  ProjectorKeeper(Options options, const ExitGate& gate);

  // `config` is a path below the open folder `root`. Does nothing if it is unchanged since it was
  // stored last. A table that is named before it exists is stored when the config changes, or at
  // the next call.
  Status Keep(int root, const std::string& config, const std::string& sub_run);

 private:
  using Stamp = std::tuple<int64_t, int64_t, uint64_t>;  // time, size, which file

  Status KeepNumbers(int fd, const std::string& name);
  Status KeepText(int fd, const std::string& name);

  const Options options_;
  const ExitGate& gate_;
  std::map<std::string, Stamp> kept_;    // by config
  std::map<std::string, Stamp> tables_;  // by entry, the config's too
};

}  // namespace athanor
