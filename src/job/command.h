// A job's command: ${name} for a parameter, ${args} for all of them as flags, ${channel.NAME} for
// the folder a data channel has where the job runs. Pure, so that the client can check a command
// and the agent can build it by the same rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace athanor {

// The folder of a channel; nullopt if the job has no such channel.
using ChannelPath = std::function<std::optional<std::string>(std::string_view name)>;

// The command with every known ${name} replaced. In the shell form the value is quoted for its
// position (bare, in "double" or in 'single' quotes), so that it is always one word of data and
// never code. Left as they are: names in CAPITALS (the shell's), shell forms such as ${x:-y}, and
// $${name}, which gives ${name}.
//
// ${args} is a separate word. It is replaced by the parameters that the command does not name
// itself, in the form that argparse reads:
//   lr: 0.1          --lr 0.1            layers: [64, 32]   --layers 64 32
//   shift: -1e-5     --shift=-1e-5       amp: true          --amp
//   map: {a: 1}      --map '{"a":1}'     amp: false, null   nothing
//
// kInvalid: any other name that is not a parameter or channel (with the nearest one), or a value
// that cannot be quoted at its position (`...` or a here-document).
Result<std::vector<std::string>> SubstituteCommand(const JobSpec& spec,
                                                   const ChannelPath& channel_path);

inline constexpr char kFlagsPlace[] = "${args}";

// Whether it has ${args}; and adds it to the end of the command (`args: flags`, `ath run -P`).
// kInvalid: a shell command with several programs, because it is unclear which one is meant.
bool PassesFlags(const JobSpec& spec);
Status PassFlags(JobSpec& spec);

// Whether the command gives this parameter to its program: by ${name}, by ${args}, or because it is
// also written there literally.
bool CommandPasses(const JobSpec& spec, const Param& param);

// The command as it runs, in one line for people. A command that cannot be built is shown as
// written.
std::string CommandLine(const JobSpec& spec);

// Parameters that are for the platform, not for the script.
bool IsPlatformParam(std::string_view name);

}  // namespace athanor
