// A Python module that could not be found: which package has it, where it is listed already, and
// what to type to get it. Pure, except for what it asks the surroundings.
#pragma once

#include <string>
#include <string_view>

#include "job/record.h"
#include "watch/diagnose/diagnose.h"

namespace athanor {

// "scikit-learn" for sklearn; the module's own name if it is not a known exception.
std::string PackageOf(std::string_view module);

// Whether a requirements file names the package, in any spelling.
bool Requires(std::string_view requirements, std::string_view package);

// `where`: " (at train.py:3)", or empty.
Cause MissingModule(const std::string& module, const std::string& where,
                    const EndEvidence& evidence);

}  // namespace athanor
