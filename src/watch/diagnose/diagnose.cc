#include "watch/diagnose/diagnose.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"
#include "watch/diagnose/install.h"
#include "watch/diagnose/modules.h"
#include "watch/diagnose/python_causes.h"
#include "watch/diagnose/signs.h"
#include "watch/diagnose/surroundings.h"
#include "watch/diagnose/traceback.h"

namespace athanor {
namespace {

constexpr size_t kEvidenceLines = 8;
constexpr size_t kLastLines = 30;
constexpr size_t kNearLines = 3;   // at the end, where any text counts
constexpr size_t kMostAfter = 10;  // lines that may follow a traceback that ended the script
constexpr size_t kMostBetween =
    80;  // lines of a launcher's own between a process's and its traceback

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

// Lines that programs print on their way out, or that warn only: none of them is the reason.
bool IsNoise(std::string_view line) {
  const std::string_view text = Trim(line);
  if (text.empty() || text.find_first_not_of("=-*~_#. ") == std::string_view::npos) return true;
  for (const std::string_view start :
       {"wandb:", "[athanor]", "Set the environment variable HYDRA_FULL_ERROR", "srun:",
        "slurmstepd:", "make:", "  warnings.warn", "warnings.warn(", "For more information",
        "note: run with `RUST_BACKTRACE", "sys:1:", "Sentry is attempting", "Press Ctrl-C to quit",
        "CUDA kernel errors might be", "For debugging consider passing CUDA_LAUNCH_BLOCKING",
        "Compile with `TORCH_USE_CUDA_DSA`", "Device-side assertion tracking",
        "See documentation for Memory Management", "If this is a private repository"}) {
    if (StartsWith(text, start)) return true;
  }
  for (const std::string_view part :
       {"Warning: ", "resource_tracker:", "Exception ignored in", "Error in atexit",
        "FutureWarning", "Error executing job with overrides", "destroy_process_group()"}) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// A sentence with which a program says why it gives up.
bool IsVerdict(std::string_view line) {
  const std::string text = " " + ToLower(line) + " ";
  for (const std::string_view word :
       {"error",       "fatal",     "fail",      "abort",    "giving up", "gave up",
        "cannot",      "can't",     "could not", "couldn't", "unable to", "invalid",
        "missing",     "not found", "no such",   "refus",    "denied",    "exiting",
        "unsupported", "stopping",  " not ",     " no "}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

// Trouble that the program itself says it got over.
bool IsPassing(std::string_view line) {
  const std::string text = ToLower(line);
  for (const std::string_view word : {"retry", "warn", "fallback", "falling back", "ignor", "skipp",
                                      "continuing", "info", "debug", "trying again"}) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

// The lines of a tail without those of tracebacks of the ignored kind.
struct Tail {
  std::vector<std::string> lines;
  std::vector<Traceback> tracebacks;
  std::vector<bool> aside;  // per line

  explicit Tail(const std::string& text)
      : lines(PlainLines(text)), tracebacks(ParseTracebacks(text)), aside(lines.size(), false) {
    for (const Traceback& one : tracebacks) {
      if (one.told != Told::kIgnored && one.told != Told::kAside) continue;
      const size_t begin = one.begin > 0 ? one.begin - 1 : 0;  // with the line before it
      for (size_t i = begin; i < one.end; ++i) aside[i] = true;
    }
  }

  // The last lines with content that belong to no traceback.
  std::vector<std::string> Outside(size_t count) const {
    std::vector<bool> inside = aside;
    for (const Traceback& one : tracebacks) {
      for (size_t i = one.begin; i < one.end; ++i) inside[i] = true;
    }
    std::vector<std::string> said;
    for (size_t i = lines.size(); i-- > 0 && said.size() < count;) {
      if (!inside[i] && !IsNoise(lines[i])) said.push_back(Short(lines[i]));
    }
    std::reverse(said.begin(), said.end());
    return said;
  }

  // Lines after `at` with content, in their order.
  std::vector<std::string_view> After(size_t at) const {
    std::vector<std::string_view> said;
    for (size_t i = at; i < lines.size(); ++i) {
      if (!aside[i] && !IsNoise(lines[i])) said.push_back(lines[i]);
    }
    return said;
  }
};

// The last lines with content, of stderr if there are any, otherwise of stdout. Warnings are left
// out while there is something else.
std::vector<std::string> LastWords(const EndEvidence& evidence, size_t count) {
  for (const bool noise : {false, true}) {
    for (const std::string* tail : {&evidence.stderr_tail, &evidence.stdout_tail}) {
      std::vector<std::string> words;
      for (const std::string& line : PlainLines(*tail, kLastLines)) {
        if (!Trim(line).empty() && (noise || !IsNoise(line))) words.push_back(Short(line));
      }
      if (words.size() > count) words.erase(words.begin(), words.end() - static_cast<long>(count));
      if (!words.empty()) return words;
    }
  }
  return {};
}

// Python prints an uncaught exception from the module down; one that was caught and printed begins
// where it was caught.
bool FromTheTop(const Traceback& traceback) {
  const auto& frames = traceback.last().frames;
  if (frames.empty()) return true;
  const std::string& function = frames.front().function;
  return function.empty() || function == "<module>" || StartsWith(function, "_run_module") ||
         StartsWith(function, "_run_code") || EndsWith(function, "<module>");
}

// Whether the source can catch the exception: the line of the module that it came through is in a
// `try`. True also if the source is unknown.
bool MayBeCaught(const Traceback& traceback, const EndEvidence& evidence) {
  const auto& frames = traceback.last().frames;
  if (frames.empty() || evidence.around == nullptr || frames.front().line < 1) return true;
  std::string_view file = frames.front().file;
  if (StartsWith(file, evidence.code_dir + "/")) file.remove_prefix(evidence.code_dir.size() + 1);
  const auto lines = Split(evidence.around->SourceText(std::string(file)), '\n');
  size_t at = static_cast<size_t>(frames.front().line) - 1;
  if (at >= lines.size()) return true;
  const auto indent = [](std::string_view line) { return line.find_first_not_of(" \t"); };
  size_t depth = indent(lines[at]);
  while (at-- > 0 && depth != 0) {
    const size_t here = indent(lines[at]);
    if (here == std::string::npos || here >= depth || lines[at][here] == '#') continue;
    if (StartsWith(std::string_view(lines[at]).substr(here), "try:")) return true;
    depth = here;
  }
  return depth != 0;
}

// A program that starts others and fails because they do.
bool IsLauncher(const Traceback& traceback) {
  const std::string& type = traceback.last().type;
  return EndsWith(type, "ChildFailedError") || EndsWith(type, "CalledProcessError") ||
         EndsWith(type, "ProcessRaisedException");
}

// The traceback that ended the script: the last one that was not caught, as far as the log tells.
std::optional<Traceback> FatalIn(const Tail& tail, const EndEvidence& evidence) {
  const int code = evidence.exit->code;
  const auto& all = tail.tracebacks;
  for (size_t i = all.size(); i-- > 0;) {
    const Traceback& one = all[i];
    if (one.told == Told::kIgnored || one.told == Told::kAside) continue;
    const auto after = tail.After(one.end);
    // A launcher lists below its traceback who failed.
    if (!after.empty() && !EndsWith(one.last().type, "ChildFailedError")) {
      const bool top = FromTheTop(one) && one.told == Told::kPlain;
      // Python itself ends with status 1, right after printing it.
      if (!top || code != 1) return std::nullopt;
      if (MayBeCaught(one, evidence) && (IsVerdict(after.back()) || after.size() > kMostAfter)) {
        return std::nullopt;
      }
    }
    // What a launcher reports was printed before, by the process that it started.
    for (size_t j = i; IsLauncher(one) && j-- > 0;) {
      if (all[j].told != Told::kIgnored && !IsLauncher(all[j]) &&
          one.begin < all[j].end + kMostBetween) {
        return all[j];
      }
    }
    return one;
  }
  // Threads and child processes, if nothing else was printed after them.
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].told == Told::kAside && tail.After(all[i].end).empty()) return all[i];
  }
  return std::nullopt;
}

// stderr's, else stdout's (some launchers merge them), else that of the failure file. When stderr
// ends with a reason of its own, stdout's was caught.
std::optional<Traceback> FindTraceback(const EndEvidence& evidence) {
  const Tail errors(evidence.stderr_tail);
  if (auto found = FatalIn(errors, evidence)) return found;
  const auto said = errors.Outside(1);
  if (said.empty() || !IsVerdict(said.back())) {
    if (auto found = FatalIn(Tail(evidence.stdout_tail), evidence)) return found;
  }
  return ParseTraceback(evidence.failure_file);
}

// The last lines outside of tracebacks, which other code has judged: stderr's, otherwise stdout's.
std::vector<std::string> OutsideWords(const EndEvidence& evidence, size_t count) {
  for (const std::string* tail : {&evidence.stderr_tail, &evidence.stdout_tail}) {
    auto words = Tail(*tail).Outside(count);
    if (!words.empty()) return words;
  }
  return LastWords(evidence, count);
}

Cause InstallFailed(const EndEvidence& evidence) {
  const InstallProblem problem = ReadInstallLog(evidence.setup_tail);
  std::string detail;
  for (const std::string& line : PlainLines(evidence.setup_tail, kEvidenceLines)) {
    detail += Short(line) + "\n";
  }
  if (problem.disk_full) {
    Cause cause = DiskFull(std::move(detail));
    cause.text = "the environment could not be built: " + problem.why;
    return cause;
  }
  std::string hint = problem.hint;
  if (hint.find("--phase setup") == std::string::npos) hint += "\nath logs {job} --phase setup";
  return {"install_failed", "the environment could not be built: " + problem.why, std::move(hint),
          std::move(detail)};
}

// The interpreter that the first line of a script names; empty: the file is not a script.
std::string Shebang(std::string_view text) {
  if (!StartsWith(text, "#!")) return "";
  std::string_view line =
      text.substr(2, text.find('\n') == text.npos ? text.npos : text.find('\n') - 2);
  while (StartsWith(line, " ")) line.remove_prefix(1);
  return std::string(line.substr(0, 200));
}

constexpr std::string_view kReplay =
    "ath replay {job}   # runs the captured step again, on this machine";
constexpr std::string_view kCurrent =
    "ath retry {job} --current   # runs it again with the files as they are now";

Cause WindowsLines(const std::string& file) {
  Cause cause;
  cause.kind = NameOf(CauseKind::kMissingFile);
  cause.text = fmt::format(
      "{} has Windows line ends (CRLF), which the system takes for part of the "
      "names in it",
      file.empty() ? "the script" : Short(file, 120));
  cause.hint = fmt::format("sed -i 's/\\r$//' {}   # in the source folder\n{}",
                           file.empty() ? "FILE" : ShellQuote(Printable(file)), kCurrent);
  return cause;
}

Cause NotStarted(const EndEvidence& evidence) {
  const std::string& error = evidence.exit->spawn_error;
  const std::string program = evidence.command.empty() ? "the program" : evidence.command.front();
  const std::string quoted = ShellQuote(Printable(program));
  const std::string inside = StartsWith(program, "./") ? program.substr(2) : program;
  const bool mine = evidence.around != nullptr && evidence.around->InSource(inside);
  const std::string shebang = mine ? Shebang(evidence.around->SourceText(inside)) : "";
  Cause cause;
  cause.text = fmt::format("{} could not be started: {}", Short(program, 120), Short(error));
  if (EndsWith(shebang, "\r")) {
    cause = WindowsLines(inside);
    cause.text =
        fmt::format("{} could not be started: its first line ends with a Windows line end (CRLF)",
                    Short(program, 120));
  } else if (error.find("No such file") != std::string::npos) {
    cause.kind = NameOf(CauseKind::kMissingFile);
    if (!shebang.empty()) {
      cause.text =
          fmt::format("{} could not be started: its first line asks for {}, which is not there",
                      Short(program, 120), Short(shebang, 120));
      cause.hint =
          fmt::format("command -v {}   # is it installed?\ncorrect the first line\n{}",
                      ShellQuote(Short(shebang.substr(0, shebang.find(' ')), 120)), kCurrent);
    } else {
      cause.hint = fmt::format(
          "command -v {}   # is it installed, and spelled so?\nath show {{job}}", quoted);
    }
  } else if (error.find("Permission denied") != std::string::npos) {
    cause.kind = NameOf(CauseKind::kPermissionDenied);
    cause.hint = fmt::format("chmod +x {}   # in the source folder\n{}", quoted, kCurrent);
  } else if (error.find("Exec format error") != std::string::npos) {
    cause.kind = NameOf(CauseKind::kWrongBuild);
    cause.text +=
        mine && shebang.empty()
            ? "; it has no first line such as #!/bin/sh, and is no program of this machine"
            : "; it is no program of this machine";
    cause.hint = fmt::format("head -1 {}   # a script needs a first line such as #!/bin/sh\n{}",
                             quoted, kCurrent);
  } else {
    cause.kind = NameOf(CauseKind::kLaunchFailed);
    cause.hint = fmt::format("ls -l {}\nath retry {{job}}", quoted);
  }
  cause.detail = Short(error);
  return cause;
}

Cause Stopped(const EndEvidence& evidence) {
  const StopRequest& stop = *evidence.stop;
  Cause cause = stop.cause;
  if (cause.kind.empty()) cause.kind = NameOf(CauseKind::kUserStop);
  std::string text = cause.text;
  std::string hint = cause.hint;
  if (cause.Is(CauseKind::kTimeLimit)) {
    const auto limit = evidence.limits.max_runtime;
    if (text.empty()) text = fmt::format("ran longer than its limit of {}", HumanDuration(limit));
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(limit).count();
    if (hint.empty()) {
      hint = fmt::format("ath retry {{job}} --max-runtime {}m", std::max<int64_t>(minutes, 1) * 2);
    }
  } else if (cause.Is(CauseKind::kHung)) {
    if (text.empty()) text = "made no progress: no output, no metric and no CPU time";
    if (hint.empty()) hint = "ath logs {job} --tail 50\nath retry {job} --debug";
  } else {
    if (text.empty())
      text = stop.who.empty() ? "stopped on request" : "stopped by " + Short(stop.who, 80);
    if (hint.empty()) hint = "ath retry {job}";
  }
  if (evidence.exit && evidence.exit->signal == 9) {
    text += fmt::format("; it did not end within {} and was killed", HumanDuration(stop.grace));
  } else if (evidence.exit && evidence.exit->code > 0) {
    text += fmt::format("; it ended with status {}", evidence.exit->code);
  }
  cause.text = std::move(text);
  cause.hint = std::move(hint);
  return cause;
}

// `shell_status`: the 128+n by which a shell reports it, or 0.
Cause BySignal(int signal, int shell_status, const EndEvidence& evidence) {
  const std::string said = shell_status == 0
                               ? "ended by " + SignalName(signal)
                               : fmt::format("exit status {}: a program it ran was ended by {}",
                                             shell_status, SignalName(signal));
  const auto crash = ParseCrashStack(evidence.stderr_tail);
  if (signal == SIGSEGV) {
    Cause cause = FromCrash(crash, evidence);
    if (shell_status != 0) cause.text += fmt::format(", exit status {}", shell_status);
    return cause;
  }
  Cause cause{"signal", said, "ath logs {job} --tail 50",
              Join(LastWords(evidence, kEvidenceLines), "\n")};
  switch (signal) {
    case SIGKILL:
      cause.text += "; it was not the job's memory limit";
      cause.hint += "\ndmesg | tail   # did the kernel kill it for the whole machine's memory?";
      break;
    case SIGABRT:
      for (const std::string& line : LastWords(evidence, kLastLines)) {
        if (SaysNoMemory(line)) {
          Cause memory = OutOfMemory(evidence, line);
          memory.detail = cause.detail;
          return memory;
        }
        if (line.find("terminate called") != std::string::npos ||
            line.find("what():") != std::string::npos ||
            line.find("Fatal Python error") != std::string::npos ||
            line.find("Assertion") != std::string::npos) {
          cause.text = said + ": " + std::string(Trim(line));
        }
      }
      cause.hint += "\nath retry {job} --debug";
      break;
    case SIGILL:
      cause.kind = NameOf(CauseKind::kWrongBuild);
      cause.text += ": a package was built for another kind of CPU";
      cause.hint += "\ninstall a version that was built for this machine";
      break;
    case SIGBUS:
      cause.text += ": a memory-mapped file shrank, or shared memory is full";
      cause.hint += "\ndf -h /dev/shm";
      break;
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
      cause.text += "; Athanor did not send it";
      cause.hint = "ath retry {job}\n" + cause.hint;
      break;
    case SIGXCPU:
      cause.text += ": the limit of CPU time (ulimit -t) was reached";
      break;
    case SIGXFSZ:
      cause.kind = NameOf(CauseKind::kSystemLimit);
      cause.text += ": a file grew beyond the limit (ulimit -f)";
      break;
    case SIGPIPE:
      cause.text += ": the program at the other end of a pipe ended first";
      break;
    case SIGFPE:
      cause.text += ": a division of whole numbers by zero";
      break;
    default:
      break;
  }
  return cause;
}

// What sh and bash print when a program that they ran was ended by a signal. Without these words a
// status of 128+n is just a number: the script may have chosen it.
std::optional<int> ShellSignal(int code, const EndEvidence& evidence) {
  constexpr std::pair<int, std::string_view> kWords[] = {{SIGILL, "Illegal instruction"},
                                                         {SIGABRT, "Aborted"},
                                                         {SIGBUS, "Bus error"},
                                                         {SIGFPE, "Floating point exception"},
                                                         {SIGKILL, "Killed"},
                                                         {SIGSEGV, "Segmentation fault"},
                                                         {SIGTERM, "Terminated"},
                                                         {SIGHUP, "Hangup"},
                                                         {SIGXCPU, "CPU time limit exceeded"},
                                                         {SIGXFSZ, "File size limit exceeded"}};
  for (const auto& [signal, words] : kWords) {
    if (code != 128 + signal) continue;
    for (const std::string& line : PlainLines(evidence.stderr_tail, kLastLines)) {
      if (line.find(words) != std::string::npos) return signal;
    }
  }
  return std::nullopt;
}

// "/usr/bin/python3: No module named trainer", and the longer words of python -m.
std::string ModuleNotRun(std::string_view line) {
  constexpr std::string_view kNone = "No module named ";
  const size_t at = line.find(kNone);
  if (at == std::string_view::npos || line.find("python") == std::string_view::npos) return "";
  std::string_view name = line.substr(at + kNone.size());
  if (StartsWith(name, "'")) name.remove_prefix(1);
  size_t end = 0;
  while (end < name.size() && (std::isalnum(static_cast<unsigned char>(name[end])) != 0 ||
                               name[end] == '_' || name[end] == '.')) {
    ++end;
  }
  name = name.substr(0, end);
  while (EndsWith(name, ".")) name.remove_suffix(1);
  return std::string(name);
}

// "sh: 1: foo: not found", "x.sh: line 3: foo: command not found": foo.
std::string WordBefore(std::string_view line, std::string_view words) {
  const size_t at = line.rfind(words);
  if (at == std::string_view::npos) return "";
  std::string_view before = line.substr(0, at);
  if (const size_t colon = before.rfind(": "); colon != before.npos)
    before.remove_prefix(colon + 2);
  return std::string(Trim(before));
}

// What interpreters and shells say when there is nothing to run.
std::optional<Cause> NothingToRun(const EndEvidence& evidence,
                                  const std::vector<std::string>& words) {
  const int code = evidence.exit->code;
  for (auto at = words.rbegin(); at != words.rend(); ++at) {
    const std::string& line = *at;
    constexpr std::string_view kCannotOpen = "can't open file '";
    if (const size_t open = line.find(kCannotOpen); open != std::string::npos) {
      const size_t begin = open + kCannotOpen.size();
      const std::string path = line.substr(begin, line.find("':", begin) - begin);
      std::string_view inside = path;
      if (StartsWith(path, evidence.code_dir + "/"))
        inside.remove_prefix(evidence.code_dir.size() + 1);
      Cause cause = MissingFile(inside, "", evidence);
      cause.text = fmt::format("Python found no {} to run", Short(inside));
      return cause;
    }
    if (const std::string module = ModuleNotRun(line); !module.empty()) {
      constexpr std::string_view kMain = ".__main__";
      if (EndsWith(module, kMain)) {
        const std::string package = module.substr(0, module.size() - kMain.size());
        return Cause{
            "bad_import",
            fmt::format("{} is a package without __main__.py, so python -m cannot run it", package),
            fmt::format("name one of its modules: python -m {}.MODULE\nath show {{job}}", package),
            line};
      }
      Cause cause = MissingModule(module, "", evidence);
      cause.detail = line;
      return cause;
    }
    if (code != 127 && code != 126) continue;
    if (line.find("bad interpreter") != std::string::npos) {
      Cause cause{"missing_file",
                  "the first line of a script asks for an interpreter that is not there: " + line,
                  "correct the first line of the script\n" + std::string(kCurrent), line};
      return cause;
    }
    for (const std::string_view ending : {": command not found", ": not found"}) {
      if (!EndsWith(line, ending)) continue;
      const std::string program = WordBefore(line, ending);
      Cause cause = MissingProgram(program, "");
      cause.text = fmt::format("the shell found no program {}", Short(program, 120));
      cause.detail = line;
      return cause;
    }
    if (EndsWith(line, ": No such file or directory")) {
      std::string program = WordBefore(line, ": No such file or directory");
      for (const std::string_view quote : {"'", "‘", "’"}) program = ReplaceAll(program, quote, "");
      Cause cause = MissingProgram(program, "");
      cause.detail = line;
      return cause;
    }
    if (EndsWith(line, "Permission denied")) {
      const std::string program = WordBefore(line, ": Permission denied");
      return Cause{"permission_denied", fmt::format("{} may not be executed", Short(program, 120)),
                   fmt::format("chmod +x {}   # in the source folder\n{}",
                               ShellQuote(Short(program, 120)), kCurrent),
                   line};
    }
  }
  return std::nullopt;
}

// A shell treats the carriage return as part of a word, and prints it.
std::optional<Cause> CarriageReturns(const EndEvidence& evidence) {
  const std::string& raw = evidence.stderr_tail;
  for (const std::string_view sign :
       {"\r: not found", "\r: command not found", "$'\\r'", "^M: bad interpreter",
        "\\r': No such file", "\\r’: No such file", "\r: No such file", "Illegal option -\r",
        "\r: bad interpreter", "invalid option\r", "\r: invalid option", "\r: numeric argument",
        "bad variable name\r"}) {
    const size_t at = raw.rfind(sign);
    if (at == std::string::npos) continue;
    const size_t newline = raw.rfind('\n', at);
    const size_t begin = newline == std::string::npos ? 0 : newline + 1;
    std::string line = ReplaceAll(raw.substr(begin, raw.find('\n', at) - begin), "\r", "^M");
    // "train.sh: 2: …", "./train.sh: line 2: …"
    std::string file = line.substr(0, line.find(':'));
    if (file.find_first_of(" /") == 0 || file == "sh" || file == "bash" || EndsWith(file, "/env"))
      file.clear();
    Cause cause = WindowsLines(Printable(file));
    cause.detail = Short(line);
    return cause;
  }
  return std::nullopt;
}

// "cat: data.csv: No such file or directory", "tar: x.tar: Cannot open: No such file or directory"
std::string FileOfLine(std::string_view line) {
  std::string path = WordBefore(line, ": No such file or directory");
  if (EndsWith(path, ": Cannot open")) path = path.substr(0, path.size() - 13);
  for (const std::string_view quote : {"'", "‘", "’", "\""}) path = ReplaceAll(path, quote, "");
  for (const std::string_view verb :
       {"cannot access ", "cannot open ", "cannot stat ", "can't cd to ", "can't open "}) {
    if (StartsWith(path, verb)) path = path.substr(verb.size());
  }
  return path;
}

// What a line means by itself; none: nothing known.
std::optional<Cause> ByLine(const std::string& line, const EndEvidence& evidence) {
  const int code = evidence.exit->code;
  const std::string words = fmt::format("exit status {}: {}", code, Trim(line));
  const bool shm = line.find("/dev/shm") != std::string::npos;
  if (SaysDiskFull(line) && !shm) return DiskFull(line);
  if (SaysNoMemory(line)) return OutOfMemory(evidence, line);
  constexpr std::string_view kNoLibrary = ": cannot open shared object file";
  if (const size_t at = line.find(kNoLibrary); at != std::string::npos) {
    return MissingLibrary(std::string_view(line).substr(0, at), "");
  }
  if (const std::string name = MissingVariableIn(line); !name.empty()) {
    Cause cause = MissingVariable(name, "");
    cause.text =
        line.find("not set") != std::string::npos || line.find("unbound") != std::string::npos
            ? cause.text
            : words;
    return cause;
  }
  if (const auto sign = SignOfLine(line, code)) return FromSign(*sign, words, evidence);
  if (line.find("ermission denied") != std::string::npos ||
      line.find("Read-only file system") != std::string::npos) {
    return PermissionDenied(words, "");
  }
  if (EndsWith(line, "No such file or directory")) {
    Cause cause = MissingFile(FileOfLine(line), "", evidence);
    return cause;
  }
  return std::nullopt;
}

Cause ByStatus(const EndEvidence& evidence) {
  const int code = evidence.exit->code;
  const std::vector<std::string> words = OutsideWords(evidence, kEvidenceLines);
  if (auto cause = CarriageReturns(evidence)) return *cause;
  if (auto cause = NothingToRun(evidence, words)) return *cause;
  if (const auto signal = ShellSignal(code, evidence)) return BySignal(*signal, code, evidence);
  // From the last line on: what was printed last is the most likely reason. Further up, only lines
  // that are not printed in passing.
  const std::vector<std::string> more = OutsideWords(evidence, kLastLines);
  for (size_t i = more.size(); i-- > 0;) {
    const bool last = i + 1 == more.size();
    if (!last && IsPassing(more[i])) continue;
    if (i + kNearLines < more.size() && !IsVerdict(more[i])) continue;
    if (auto cause = ByLine(more[i], evidence)) {
      if (cause->detail.empty() || cause->detail == more[i]) cause->detail = Join(words, "\n");
      return *cause;
    }
  }
  Cause cause{"nonzero_exit", fmt::format("exit status {}", code), "ath logs {job} --tail 50",
              Join(words, "\n")};
  if (!words.empty()) cause.text += ": " + std::string(Trim(words.back()));
  if (code == 124) {
    cause.text += "; 124 is what the program timeout returns when the time is up";
  } else if (code > 128 && code <= 128 + SIGSYS) {
    cause.text += fmt::format(
        "; the script returned this status itself, no signal ended it. Shells "
        "return it for a program that was ended by {}",
        SignalName(code - 128));
  }
  cause.hint += code == 126 ? "\nchmod +x FILE   # 126: found, but not executable" : "";
  return cause;
}

// Nothing else shows it: a pool that starts its workers again continues silently.
Cause CompletedWithoutAChild(const EndEvidence& evidence) {
  const auto& exit = *evidence.exit;
  const std::string who = exit.oom_child == "unknown" ? "" : " (" + Short(exit.oom_child, 80) + ")";
  Cause cause = OutOfMemory(evidence, "");
  cause.kind = NameOf(CauseKind::kCompleted);
  cause.text = "a child process was killed for memory" + who + "; the script ended with 0 anyway";
  cause.hint = "check that the results are complete\n" + cause.hint;
  return cause;
}

// The script's own message (the SageMaker contract) is the best one, but the kind stays what the
// evidence shows.
Cause WithFailureFile(Cause cause, const std::string& failure) {
  std::vector<std::string> lines;
  for (std::string& line : PlainLines(failure.substr(0, 16'384), 100)) {
    if (!Trim(line).empty()) lines.push_back(Short(Trim(line), 500));
  }
  if (lines.empty()) return cause;
  const bool telling =
      !EndsWith(lines[0], ":") && lines[0].find("Traceback (most") == std::string::npos;
  if (telling && (cause.Is(CauseKind::kPythonException) || cause.Is(CauseKind::kNonzeroExit))) {
    cause.text = lines[0];
  }
  if (cause.detail.empty()) cause.detail = Join(lines, "\n").substr(0, 4'096);
  return cause;
}

Cause CauseOfEnd(const EndEvidence& evidence) {
  if (evidence.setup_failed) return InstallFailed(evidence);
  if (!evidence.exit) {
    if (evidence.stop) return Stopped(evidence);
    return {"agent_lost", "the job's agent and script are gone, and no exit record was written",
            "ath retry {job}\nath events {job}", Join(LastWords(evidence, kEvidenceLines), "\n")};
  }
  const ExitInfo& exit = *evidence.exit;
  if (!exit.spawn_error.empty()) return NotStarted(evidence);
  const bool failed = exit.code != 0 || exit.signal != 0;
  if (failed && exit.oom_killed) {
    Cause cause = OutOfMemory(evidence, "");
    cause.detail = Join(LastWords(evidence, kEvidenceLines), "\n");
    return cause;
  }
  // It was told to stop, and had finished its work: athanor.done() says so.
  if (evidence.stop && (failed || !exit.done_called)) return Stopped(evidence);
  if (!failed && !exit.oom_child.empty()) return CompletedWithoutAChild(evidence);
  if (!failed) return {"completed", "the script ended with status 0", "ath show {job}", ""};
  if (exit.disk_full) return DiskFull(Join(LastWords(evidence, kEvidenceLines), "\n"));
  if (exit.signal != 0)
    return WithFailureFile(BySignal(exit.signal, 0, evidence), evidence.failure_file);
  const auto traceback = FindTraceback(evidence);
  Cause cause = traceback ? FromTraceback(*traceback, evidence) : ByStatus(evidence);
  return WithFailureFile(std::move(cause), evidence.failure_file);
}

}  // namespace

Cause Diagnose(const EndEvidence& evidence) {
  Cause cause = CauseOfEnd(evidence);
  if (evidence.captured && !cause.Is(CauseKind::kCompleted))
    cause.hint += "\n" + std::string(kReplay);
  return cause;
}

Cause ForJob(Cause cause, const std::string& job_name) {
  cause.hint = ReplaceAll(std::move(cause.hint), "{job}", ShellQuote(job_name));
  return cause;
}

}  // namespace athanor
