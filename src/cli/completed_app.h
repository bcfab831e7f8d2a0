// The command line as the parser knows it, made into what completion needs. Only args.cc includes
// this, for it needs the parser's headers.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/complete.h"

namespace athanor {

CompletedVerb CompletedOf(const CLI::App& app);

}  // namespace athanor
