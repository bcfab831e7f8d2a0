// A virtual environment in the source folder (.venv) is not packaged: it holds full
// paths and thousands of files. A command that names a program of it is made to use
// it where it is, so that `ath run -- .venv/bin/python train.py` runs as typed.
#pragma once

#include <string>
#include <vector>

#include "job/spec.h"
#include "submit/bundle.h"

namespace athanor {

// Puts full paths into the command (and environment.python) where they lead into a venv that is in
// the folder but not in the bundle. Returns the venvs used, as given.
std::vector<std::string> UseOwnVenvs(JobSpec& spec, const SourceTree& tree);

}  // namespace athanor
