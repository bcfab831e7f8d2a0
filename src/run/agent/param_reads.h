// ParamReads finds out which parameters of a job its script never read, so that no one believes it
// trained with them. A script can get a parameter from
//   its command line         known before it starts (job/command.h)
//   files of the contract    hyperparameters.json and params.json: whether they are opened is
//   watched athanor.params           the package notes each name that is asked for SM_HPS,
//   SM_HP_NAME       python/site/sitecustomize.py notes reads of os.environ; what other
//                            programs read of their environment nobody can know
// The notes are lines of a file in the job's own folder, `read` in ParamsDir()
// (run/contract/contract.h):
//   python         an interpreter with our sitecustomize started
//   name lr        athanor.params was asked for lr;   all   for everything at once
//   env SM_HP_LR   os.environ was;                    walk  the environment was copied as a whole
//   spawn tar      another program was started
// Threads: one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/io/held_folder.h"
#include "job/spec.h"

namespace athanor {

struct Unread {
  std::vector<std::string> names;
  bool sure = false;  // a Python script, and nothing else that could have read them
  bool operator==(const Unread&) const = default;
};

// The parameters that the command does not give to its program. None for jobs of other APIs, whose
// requests also contain parameters for the platform.
std::vector<std::string> ParamsToWatch(const JobSpec& spec);

// What the notes leave unread, if none of the files was opened. Pure.
Unread UnreadByNotes(const JobSpec& spec, std::string_view notes);

class ParamReads {
 public:
  // Before the script starts. `root`: the contract's tree as this process sees it.
  void Watch(const JobSpec& spec, const std::string& root);
  // After it ended. None, unless its whole run was watched.
  Unread Find(const JobSpec& spec, const HeldFolder& ml);

 private:
  UniqueFd inotify_;  // none: not watched
};

}  // namespace athanor
