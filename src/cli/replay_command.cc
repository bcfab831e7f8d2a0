#include "cli/replay_command.h"

#include "base/io/files.h"
#include "base/text/text.h"
#include "submit/check.h"

namespace athanor {
namespace {

// Up to the script: interpreter, its options, and the module that replays.
std::vector<std::string> Head(const std::vector<std::string>& words, const ScriptWord& script,
                              const ReplayRequest& request) {
  std::vector<std::string> head;
  if (StartsWith(BaseName(words.front()), "python")) {
    const size_t end = script.module ? script.index - 1 : script.index;
    head.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end));
  } else {
    head.emplace_back("python3");
  }
  head.insert(head.end(), {"-m", "athanor.replay"});
  if (request.debug) head.emplace_back("--pdb");
  if (request.step) head.insert(head.end(), {"--step", std::to_string(*request.step)});
  if (script.module) head.emplace_back("--module");
  head.push_back(request.capture);
  return head;
}

}  // namespace

Result<std::vector<std::string>> ReplayCommand(const JobSpec& spec, const ReplayRequest& request,
                                               const ChannelPath& channel_path) {
  const auto words = SimpleWords(spec);
  const auto script = FindPythonScript(words);
  if (!script) {
    return Fail(
        Error{ErrorCode::kInvalid, "which script to replay cannot be told from the job's command",
              "python3 -m athanor.replay " + ShellQuote(request.capture) + " SCRIPT ARGUMENTS"}
            .Why(Printable(Join(spec.command, " ").substr(0, 200)))
            .Id("ATH-C0040"));
  }
  const auto tail = words.begin() + static_cast<std::ptrdiff_t>(script->index);
  if (!spec.shell) {
    ATHANOR_TRY(auto command, SubstituteCommand(spec, channel_path));
    auto argv = Head(command, *script, request);
    argv.insert(argv.end(), command.begin() + static_cast<std::ptrdiff_t>(script->index),
                command.end());
    return argv;
  }
  // The words may still contain the shell's $NAME, and NAME=value may come before them.
  const std::string_view text = Trim(spec.command.front());
  std::string line(text.substr(0, text.find(words.front())));
  auto head = Head(words, *script, request);
  head.back() = ShellQuote(head.back());
  line += Join(head, " ") + " " + Join({tail, words.end()}, " ");
  JobSpec replayed = spec;
  replayed.command = {line};
  ATHANOR_TRY(auto command, SubstituteCommand(replayed, channel_path));
  return std::vector<std::string>{"/bin/sh", "-c", command.front()};
}

}  // namespace athanor
