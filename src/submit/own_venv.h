// A virtual environment in the source folder (.venv) is not packaged: it contains full paths and
// thousands of files. A command that names one of its programs uses it in place, so that `ath run
// -- .venv/bin/python train.py` works.
#pragma once

#include <string>
#include <vector>

#include "job/spec.h"
#include "submit/bundle.h"

namespace athanor {

// Puts full paths into the command (and environment.python) if they lead into a venv that is in the
// folder but not in the bundle. Returns the venvs used, as given.
std::vector<std::string> UseOwnVenvs(JobSpec& spec, const SourceTree& tree);

}  // namespace athanor
