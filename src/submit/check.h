// The checks before a submit that look at the client's machine: the program, the script, the files
// that the environment names, the data. If in doubt, it passes; a job is refused here only if it
// could not have started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"
#include "submit/bundle.h"

namespace athanor {

// The command as words: argv, or a shell text that is one simple command (leading
// NAME=value words left out). Empty when a shell is needed to understand it.
std::vector<std::string> SimpleWords(const JobSpec& spec);

// The script that a command of python or of a launcher such as torchrun runs: a path as it
// is written, or with -m a module's name.
struct ScriptWord {
  std::string text;
  bool module = false;
  size_t index = 0;  // of the word
};
std::optional<ScriptWord> FindPythonScript(const std::vector<std::string>& words);

// The script inside the source that the command runs ("train.py", "-m pkg.train" gives
// "pkg/train.py" when the tree has it); empty if there is none.
std::string FindEntry(const JobSpec& spec, const SourceTree& tree);

// Everything found wrong, in the order a person would fix it. `path` is the PATH that
// the job will have; data paths are as the client resolves them.
std::vector<Error> CheckBeforeSubmit(const JobSpec& spec, const SourceTree& tree,
                                     const std::string& path);

}  // namespace athanor
