// From a job's command to the one that runs a captured step of it again under
// `python -m athanor.replay`: the same interpreter, options, script and arguments. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/command.h"
#include "job/spec.h"

namespace athanor {

struct ReplayRequest {
  std::string capture;  // folder of the captured step
  std::optional<int64_t> step;
  bool debug = false;
};

// argv. For a launcher (torchrun) only the script and its arguments are kept: one rank is replayed.
// kInvalid if the command is not recognised as a Python script.
Result<std::vector<std::string>> ReplayCommand(const JobSpec& spec, const ReplayRequest& request,
                                               const ChannelPath& channel_path);

}  // namespace athanor
