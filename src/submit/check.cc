#include "submit/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "job/command.h"
#include "job/object_uri.h"
#include "submit/errors.h"
#include "submit/spec_check.h"

namespace athanor {
namespace {

bool IsExecutable(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

bool OnPath(const std::string& program, const std::string& path) {
  for (const auto& folder : Split(path, ':')) {
    if (!folder.empty() && IsExecutable(JoinPath(folder, program))) return true;
  }
  return false;
}

std::vector<std::string> ProgramsOn(const std::string& path) {
  std::vector<std::string> programs;
  for (const auto& folder : Split(path, ':')) {
    if (folder.empty()) continue;
    if (auto names = ListDir(folder)) {
      programs.insert(programs.end(), names->begin(), names->end());
    }
  }
  return programs;
}

bool IsPython(std::string_view program) {
  const std::string name = BaseName(program);
  return StartsWith(name, "python") && name.find_first_not_of("0123456789.", 6) == name.npos;
}

bool IsShell(std::string_view program) {
  const std::string name = BaseName(program);
  return name == "sh" || name == "bash" || name == "dash" || name == "zsh";
}

// Programs that run the first .py among their arguments.
bool IsLauncher(std::string_view program) {
  const std::string name = BaseName(program);
  for (const std::string_view known :
       {"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "coverage", "kernprof"}) {
    if (name == known) return true;
  }
  return false;
}

// The environment brings its own programs, which are not on this PATH.
bool BringsPrograms(const EnvironmentSpec& environment) {
  return !environment.requirements.empty() || !environment.conda.empty() ||
         environment.base == "system" || environment.base == "isolated" ||
         !environment.python.empty();
}

// The script argument as written, for an interpreter or launcher.
ScriptWord FindScript(const std::vector<std::string>& words) {
  const std::string& program = words.front();
  if (!IsPython(program) && !IsShell(program) && !IsLauncher(program)) {
    return {program.find('/') != std::string::npos ? program : "", false, 0};
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (IsLauncher(program)) {
      if (EndsWith(word, ".py") && !StartsWith(word, "-")) return {word, false, i};
      continue;
    }
    if (word == "-m" && IsPython(program)) {
      return i + 1 < words.size() ? ScriptWord{words[i + 1], true, i + 1} : ScriptWord{};
    }
    if (word == "-" || StartsWith(word, "-c")) return {};
    // Options of their own argument.
    if ((IsPython(program) && (word == "-X" || word == "-W" || word == "-Q")) ||
        (IsShell(program) && (word == "-o" || word == "-O" || word == "+O"))) {
      ++i;
    } else if (!StartsWith(word, "-") && !(IsShell(program) && StartsWith(word, "+"))) {
      return {word, false, i};
    }
    // "-euc" and similar: a command follows, not a script.
    if (IsShell(program) && StartsWith(word, "-") && !StartsWith(word, "--") &&
        word.find('c') != std::string::npos) {
      return {};
    }
  }
  return {};
}

// Relative to the source, without "./"; empty when it is not a name inside it.
std::string InsideName(std::string text, const SourceTree& tree) {
  if (StartsWith(text, tree.dir + "/")) text = text.substr(tree.dir.size() + 1);
  while (StartsWith(text, "./")) text = text.substr(2);
  return CheckRelativeName(text).ok() ? text : "";
}

bool IsFolder(const SourceTree& tree, const std::string& name) {
  return std::any_of(tree.manifest.entries.begin(), tree.manifest.entries.end(),
                     [&](const BundleEntry& entry) { return StartsWith(entry.path, name + "/"); });
}

// Whether a path goes through a link of the bundle cannot be seen from the list alone.
bool ThroughLink(const SourceTree& tree, const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const BundleEntry* entry = tree.manifest.Find(name.substr(0, slash));
    if (entry != nullptr && entry->kind == BundleEntry::Kind::kLink) return true;
  }
  return false;
}

// Why `name` is not part of the bundle.
Error NotInBundle(const SourceTree& tree, const std::string& name, std::string_view id,
                  std::string_view what) {
  auto error =
      Error{ErrorCode::kInvalid, fmt::format("{} {} is not in the source", what, Quoted(name))}.Id(
          std::string(id));
  if (IsFolder(tree, name)) {
    error.why = "it is a folder";
    error.hint = "name a file in it";
    return error;
  }
  if (Exists(JoinPath(tree.dir, name))) {
    const IgnoreVerdict verdict = tree.rules.OnPath(name, false);
    if (verdict.ignored) {
      error.why =
          verdict.line == 0
              ? fmt::format("it is ignored by {}: {}", verdict.source, Quoted(verdict.pattern))
              : fmt::format("it is ignored by {} line {}: {}", Printable(verdict.source),
                            verdict.line, Quoted(verdict.pattern));
      error.hint = fmt::format("echo {} >> .athanorignore", ShellQuote("!/" + name));
    } else {
      error.why = "it was left out: it is no plain file of the folder";
      error.hint = "copy it into " + Printable(tree.dir);
    }
    return error;
  }
  error.why = fmt::format("there is no such file in {}", Printable(tree.dir));
  std::vector<std::string> names;
  for (const auto& entry : tree.manifest.entries) {
    names.push_back(entry.path);
    // The same name in another folder is the most likely mistake.
    if (BaseName(entry.path) == BaseName(name)) {
      error.hint = fmt::format("did you mean {}?", Printable(entry.path));
      return error;
    }
  }
  if (const auto near = Nearest(name, names)) {
    error.hint = fmt::format("did you mean {}?", Printable(*near));
  } else {
    error.hint = "ls " + ShellQuote(tree.dir);
  }
  return error;
}

bool InBundle(const SourceTree& tree, const std::string& name) {
  const BundleEntry* entry = tree.manifest.Find(name);
  return entry != nullptr && entry->kind != BundleEntry::Kind::kFolder;
}

void CheckProgram(const JobSpec& spec, const SourceTree& tree, const std::string& path,
                  const std::string& program, std::vector<Error>& errors) {
  const auto missing = [&](std::string why, std::string hint) {
    errors.push_back(Refuse("ATH-S0130",
                            fmt::format("the program {} is not there", Quoted(program)),
                            std::move(why), std::move(hint))
                         .value());
  };
  if (program.find('$') != std::string::npos) return;
  if (program.find('/') == std::string::npos) {
    if (BringsPrograms(spec.environment) || OnPath(program, path)) return;
    if (EndsWith(program, ".py") && InBundle(tree, program)) {
      missing("it is a script, not a program", "ath run -- python3 " + ShellQuote(program));
    } else if (program == "python" && OnPath("python3", path)) {
      missing("PATH has python3 but no python", "write python3 in its place");
    } else {
      const auto near = Nearest(program, ProgramsOn(path));
      missing("no folder of PATH has it",
              near ? fmt::format("did you mean {}?", *near) : "install it, or give its full path");
    }
    return;
  }
  const std::string inside = InsideName(program, tree);
  if (inside.empty() || program.front() == '/') {
    if (program.front() == '/' && !IsExecutable(program)) {
      missing(Exists(program) ? "it may not be executed" : "no such file", "check the path");
    }
    return;
  }
  if (ThroughLink(tree, inside)) return;
  if (!InBundle(tree, inside)) {
    errors.push_back(NotInBundle(tree, inside, "ATH-S0131", "the program"));
    return;
  }
  const BundleEntry* entry = tree.manifest.Find(inside);
  if (entry->kind == BundleEntry::Kind::kFile && !entry->executable) {
    missing("the file is not executable", "chmod +x " + ShellQuote(inside));
  }
}

void CheckScript(const SourceTree& tree, const std::vector<std::string>& words,
                 std::vector<Error>& errors) {
  const ScriptWord script = FindScript(words);
  // A program with a slash was checked already; modules may be installed ones.
  if (script.text.empty() || script.module || script.text == words.front()) return;
  if (script.text.find('$') != std::string::npos) return;
  if (script.text.front() == '/') {
    if (Exists(script.text)) return;
    errors.push_back(Refuse("ATH-S0131", fmt::format("script {} is not there", Quoted(script.text)),
                            "no such file on this machine", "check the path")
                         .value());
    return;
  }
  const std::string inside = InsideName(script.text, tree);
  if (inside.empty()) {
    errors.push_back(Refuse("ATH-S0131",
                            fmt::format("script {} is not in the source", Quoted(script.text)),
                            "the job runs in a copy of " + Printable(tree.dir),
                            "submit from the folder that holds it, or set source.dir")
                         .value());
  } else if (!InBundle(tree, inside) && !ThroughLink(tree, inside)) {
    // Python also runs a folder with a __main__.py.
    if (IsPython(words.front()) && InBundle(tree, inside + "/__main__.py")) return;
    errors.push_back(NotInBundle(tree, inside, "ATH-S0131", "script"));
  }
}

void CheckData(const ChannelSpec& channel, std::vector<Error>& errors) {
  if (IsObjectUri(channel.from)) return;  // the server's to know
  struct stat info {};
  const auto refuse = [&](int failure) {
    errors.push_back(
        Refuse("ATH-S0133", fmt::format("data channel {} cannot be read", Quoted(channel.name)),
               fmt::format("{}: {}", Quoted(channel.from), std::strerror(failure)),
               fmt::format("check data.{}.from, or: -i {}=PATH", channel.name, channel.name))
            .value());
  };
  if (::stat(channel.from.c_str(), &info) != 0) return refuse(errno);
  const int wanted = S_ISDIR(info.st_mode) ? R_OK | X_OK : R_OK;
  if (::access(channel.from.c_str(), wanted) != 0) return refuse(errno);
}

}  // namespace

std::optional<ScriptWord> FindPythonScript(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const auto script = FindScript(words);
  const bool python = IsPython(words.front());
  if (script.text.empty() || (!python && !IsLauncher(words.front()))) return std::nullopt;
  return script;
}

std::vector<std::string> SimpleWords(const JobSpec& spec) {
  if (!spec.shell) return spec.command;
  if (spec.command.empty()) return {};
  const std::string_view text = Trim(spec.command.front());
  // '$' stays: "train.py --lr ${lr}" is still simple; words with it are not checked.
  if (text.find_first_of("\n;&|<>()`\"'\\*?[#~") != std::string_view::npos) return {};
  std::vector<std::string> words;
  for (auto& word : Split(ReplaceAll(std::string(text), "\t", " "), ' ')) {
    const size_t equals = word.find('=');
    const bool assignment = words.empty() && equals != std::string::npos &&
                            IsVariableName(std::string_view(word).substr(0, equals));
    if (!word.empty() && !assignment) words.push_back(std::move(word));
  }
  // Words of the shell itself are not on the PATH.
  constexpr std::string_view kShellWords[] = {"if",   "for",  "while", "case",   "until", "cd",
                                              "exec", "set",  "eval",  "export", "test",  "{",
                                              "!",    "time", ".",     "source", ":",     "exit"};
  if (words.empty() || std::ranges::find(kShellWords, words.front()) != std::end(kShellWords)) {
    return {};
  }
  return words;
}

std::string FindEntry(const JobSpec& spec, const SourceTree& tree) {
  const auto words = SimpleWords(spec);
  if (words.empty()) return "";
  const ScriptWord script = FindScript(words);
  if (script.text.empty()) return "";
  if (!script.module) {
    const std::string inside = InsideName(script.text, tree);
    return !inside.empty() && InBundle(tree, inside) ? inside : "";
  }
  const std::string stem = ReplaceAll(script.text, ".", "/");
  for (const std::string& name : {stem + ".py", stem + "/__main__.py"}) {
    if (InBundle(tree, name)) return name;
  }
  return "";
}

std::vector<Error> CheckBeforeSubmit(const JobSpec& spec, const SourceTree& tree,
                                     const std::string& path) {
  std::vector<Error> errors;
  if (const Status checked = CheckSpec(spec); !checked.ok()) errors.push_back(checked.error());
  const auto known_channel = [&](std::string_view name) -> std::optional<std::string> {
    for (const auto& channel : spec.data) {
      if (channel.name == name) return channel.from;
    }
    return std::nullopt;
  };
  if (const auto command = SubstituteCommand(spec, known_channel); !command) {
    errors.push_back(command.error());
  }
  if (const auto words = SimpleWords(spec); !words.empty()) {
    CheckProgram(spec, tree, path, words.front(), errors);
    CheckScript(tree, words, errors);
  }
  for (const std::string* file : {&spec.environment.requirements, &spec.environment.conda}) {
    if (!file->empty() && !InBundle(tree, *file) && !ThroughLink(tree, *file)) {
      errors.push_back(NotInBundle(tree, *file, "ATH-S0132", "the environment's file"));
    }
  }
  for (const auto& channel : spec.data) {
    if (CheckChannel(channel).ok()) CheckData(channel, errors);
  }
  return errors;
}

}  // namespace athanor
