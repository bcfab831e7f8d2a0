// A job's command: ${name} for a parameter, ${args} for all of them as flags, ${channel.NAME} for
// the folder a data channel has where the job runs. Pure, so that the client can check a command and
// the agent can build it by the same rules.
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
//
// ${args} is a word of its own and stands for the parameters that the command does not name itself,
// as argparse reads them:
//   lr: 0.1          --lr 0.1            layers: [64, 32]   --layers 64 32
//   shift: -1e-5     --shift=-1e-5       amp: true          --amp
//   map: {a: 1}      --map '{"a":1}'     amp: false, null   nothing
//
// kInvalid: any other name that is no parameter or channel (with the nearest one), or a value
// that cannot be quoted where it stands (`...` or a here-document).
Result<std::vector<std::string>> SubstituteCommand(const JobSpec& spec,
                                                   const ChannelPath& channel_path);

inline constexpr char kFlagsPlace[] = "${args}";

// Whether it has ${args}; and puts it at the end of the command (`args: flags`, `ath run -P`).
// kInvalid: a shell command of several programs, of which any may be meant.
bool PassesFlags(const JobSpec& spec);
Status PassFlags(JobSpec& spec);

// Whether the command gives this parameter to its program: by ${name}, by ${args}, or because it is
// written there by hand as well.
bool CommandPasses(const JobSpec& spec, const Param& param);

// The command as it runs, in one line for people. One that cannot be built is shown as written.
std::string CommandLine(const JobSpec& spec);

// What is meant for the platform and not for the script.
bool IsPlatformParam(std::string_view name);

}  // namespace athanor
