// ${name} in a job's command: parameters, and ${channel.NAME} for the folder a
// data channel has where the job runs. Pure, so that the client can check a
// command and the agent can build it by the same rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace athanor {

// The folder of a channel; nullopt when the job has no such channel.
using ChannelPath = std::function<std::optional<std::string>(std::string_view name)>;

// The command with every known ${name} replaced. In the shell form the value is
// quoted for where it stands (bare, in "double" or in 'single' quotes), so that it
// is always one word of data and never code. Left as they are: names in CAPITALS
// (the shell's), shell forms such as ${x:-y}, and $${name}, which gives ${name}.
// kInvalid: any other name that is no parameter or channel (with the nearest one),
// or a value that cannot be quoted where it stands (`...` or a here-document).
Result<std::vector<std::string>> SubstituteCommand(const JobSpec& spec,
                                                   const ChannelPath& channel_path);

}  // namespace athanor
