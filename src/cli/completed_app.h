// Converts the command line from the parser's form into what completion needs. Only args.cc
// includes this, because it needs the parser's headers.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/complete.h"

namespace athanor {

CompletedVerb CompletedOf(const CLI::App& app);

}  // namespace athanor
