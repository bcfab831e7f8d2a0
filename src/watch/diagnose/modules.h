// A Python module that could not be found: which package has it, where it is
// listed already, and what to type to get it. Pure but for what it asks of the
// surroundings.
#pragma once

#include <string>
#include <string_view>

#include "job/record.h"
#include "watch/diagnose/diagnose.h"

namespace athanor {

// "scikit-learn" for sklearn; the module's own name when it is not a known exception.
std::string PackageOf(std::string_view module);

// Whether a requirements file asks for the package, in whichever spelling.
bool Requires(std::string_view requirements, std::string_view package);

// `where`: " (at train.py:3)", or empty.
Cause MissingModule(const std::string& module, const std::string& where, const EndEvidence& evidence);

}  // namespace athanor
