// Better messages for what the command-line parser refuses. Only args.cc includes this.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/screen/help_format.h"

namespace athanor {

// The parser's own messages say neither which command it was nor what would be right. `file` is
// what it took for the job file of `run`.
Error Misunderstood(const CLI::App& app, const CLI::ParseError& e,
                    const std::vector<std::string>& args, const std::string& file);

}  // namespace athanor
