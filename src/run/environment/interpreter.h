// Which Python a job means, and what is installed for it. Nothing here starts a program, except an
// interpreter that is a script (a version manager's shim): only it knows which Python it means, so
// it is asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace athanor {

struct Interpreter {
  std::string path;      // as it was found; may belong to a venv
  std::string real;      // after all links: what venvs are made from
  std::string identity;  // changes when the interpreter is replaced by another
};

// `asked` is a version ("3.11"), a name, an absolute path, or empty for the PATH's
// python3. With `system_first`, /usr/bin comes before the PATH of `environment`.
// kNotFound names the versions there are.
Result<Interpreter> FindInterpreter(const std::string& asked, bool system_first,
                                    const std::map<std::string, std::string>& environment);

// The first executable file of that name on `path`; empty if there is none.
std::string FindProgram(const std::string& name, const std::string& path);
// PATH of an environment, or the usual one.
std::string PathOf(const std::map<std::string, std::string>& environment);

// Folders of packages below the prefix of a venv, a conda environment or an interpreter.
std::vector<std::string> SitesUnder(const std::string& prefix);
std::vector<std::string> SystemSites(const Interpreter& interpreter);
// "name==version" lines, sorted, from the folders' metadata; if two folders have the same package,
// the first counts, as it does for Python.
std::string PackagesIn(const std::vector<std::string>& sites);

}  // namespace athanor
