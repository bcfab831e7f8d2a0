#include "watch/diagnose/diagnose.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "base/text.h"
#include "watch/diagnose/install.h"
#include "watch/diagnose/python_causes.h"
#include "watch/diagnose/traceback.h"

namespace athanor {
namespace {

constexpr size_t kEvidenceLines = 8;
constexpr size_t kLastLines = 30;

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal)
                         : fmt::format("signal {} (SIG{})", signal, name);
}

// The last lines that say something, of stderr if there are any, else of stdout.
std::vector<std::string> LastWords(const EndEvidence& evidence, size_t count) {
  for (const std::string& tail : {evidence.stderr_tail, evidence.stdout_tail}) {
    std::vector<std::string> words;
    for (std::string& line : PlainLines(tail, kLastLines)) {
      if (!Trim(line).empty()) words.push_back(Short(line));
    }
    if (words.size() > count) words.erase(words.begin(), words.end() - static_cast<long>(count));
    if (!words.empty()) return words;
  }
  return {};
}

// The newest traceback: stderr's, else stdout's (some launchers merge them), else
// that of the failure file. One that was followed by much else was caught and
// logged; Python itself ends with status 1 right after printing one.
std::optional<Traceback> FindTraceback(const EndEvidence& evidence) {
  const size_t most_after = evidence.exit->code == 1 ? 40 : 3;
  for (const std::string* text :
       {&evidence.stderr_tail, &evidence.stdout_tail, &evidence.failure_file}) {
    auto traceback = ParseTraceback(*text);
    if (traceback && traceback->lines_after <= most_after) return traceback;
  }
  return std::nullopt;
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

Cause NotStarted(const EndEvidence& evidence) {
  const std::string& error = evidence.exit->spawn_error;
  const std::string program = evidence.command.empty() ? "the program" : evidence.command.front();
  const bool missing = error.find("No such file") != std::string::npos;
  Cause cause;
  cause.kind = missing ? "missing_file" : "launch_failed";
  cause.text = fmt::format("{} could not be started: {}", Short(program, 120), Short(error));
  cause.detail = Short(error);
  if (missing) {
    cause.hint =
        fmt::format("command -v {}   # is it installed, and spelled so?\nath run -- PROGRAM …",
                    ShellQuote(Printable(program)));
  } else if (error.find("Permission denied") != std::string::npos) {
    cause.hint = fmt::format("chmod +x {}   # then run it again", ShellQuote(Printable(program)));
  } else {
    cause.hint = fmt::format("head -1 {}   # a script needs a first line such as #!/bin/sh",
                             ShellQuote(Printable(program)));
  }
  return cause;
}

Cause Stopped(const EndEvidence& evidence) {
  const StopRequest& stop = *evidence.stop;
  Cause cause = stop.cause;
  if (cause.kind.empty()) cause.kind = "user_stop";
  std::string text = cause.text;
  std::string hint = cause.hint;
  if (cause.kind == "time_limit") {
    const auto limit = evidence.limits.max_runtime;
    if (text.empty()) text = fmt::format("ran longer than its limit of {}", HumanDuration(limit));
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(limit).count();
    if (hint.empty()) {
      hint = fmt::format("ath retry {{job}} --max-runtime {}m", std::max<int64_t>(minutes, 1) * 2);
    }
  } else if (cause.kind == "hung") {
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
        if (line.find("terminate called") != std::string::npos ||
            line.find("what():") != std::string::npos ||
            line.find("Fatal Python error") != std::string::npos ||
            line.find("Assertion") != std::string::npos) {
          cause.text = said + ": " + std::string(Trim(line));
        }
      }
      break;
    case SIGILL:
      cause.text += ": a package was built for another kind of CPU";
      break;
    case SIGBUS:
      cause.text += ": a memory-mapped file shrank, or shared memory is full";
      cause.hint += "\ndf -h /dev/shm";
      break;
    default:
      break;
  }
  return cause;
}

// Statuses by which sh and bash report that a program was killed by a signal.
std::optional<int> ShellSignal(int code) {
  for (const int signal : {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGTERM}) {
    if (code == 128 + signal) return signal;
  }
  return std::nullopt;
}

// What interpreters and shells say when there is nothing to run.
std::optional<Cause> NothingToRun(const EndEvidence& evidence,
                                  const std::vector<std::string>& words) {
  for (const std::string& line : words) {
    constexpr std::string_view kCannotOpen = "can't open file '";
    if (const size_t at = line.find(kCannotOpen); at != std::string::npos) {
      const size_t begin = at + kCannotOpen.size();
      const std::string path = line.substr(begin, line.find("':", begin) - begin);
      Cause cause = MissingFile(path, "", evidence);
      cause.text = fmt::format("Python found no {} to run", Short(path));
      cause.hint =
          "is it in the source folder, and not in .gitignore or .athanorignore?\nath show {job}";
      return cause;
    }
    if (line.find("No module named ") != std::string::npos &&
        line.find(": Error while") == std::string::npos &&
        line.find("python") != std::string::npos) {
      // "/usr/bin/python3: No module named trainer" (python -m), which prints no traceback.
      PythonError error{"ModuleNotFoundError",
                        "No module named '" + line.substr(line.find("No module named ") + 16) + "'",
                        {}};
      return FromTraceback(Traceback{{std::move(error)}, {}}, evidence);
    }
    if (evidence.exit->code == 127 && EndsWith(line, "not found")) {
      return Cause{"missing_file", "the shell found no such program: " + line,
                   "is it installed where the job runs, and on its PATH?\nath logs {job} --tail 50",
                   line};
    }
  }
  return std::nullopt;
}

Cause ByStatus(const EndEvidence& evidence) {
  const int code = evidence.exit->code;
  const std::vector<std::string> words = LastWords(evidence, kEvidenceLines);
  if (auto cause = NothingToRun(evidence, words)) return *cause;
  for (const std::string& line : words) {
    if (SaysDiskFull(line)) return DiskFull(line);
    if (SaysNoMemory(line)) {
      Cause cause = OutOfMemory(evidence, line);
      cause.detail = Join(words, "\n");
      return cause;
    }
  }
  if (const auto signal = ShellSignal(code)) return BySignal(*signal, code, evidence);
  Cause cause{"nonzero_exit", fmt::format("exit status {}", code), "ath logs {job} --tail 50",
              Join(words, "\n")};
  if (!words.empty()) cause.text += ": " + std::string(Trim(words.back()));
  if (code == 126) cause.hint += "\nchmod +x FILE   # 126: found, but not executable";
  return cause;
}

// Nothing else would tell: a pool that starts its workers again goes on without a word.
Cause CompletedWithoutAChild(const EndEvidence& evidence) {
  const auto& exit = *evidence.exit;
  const std::string who = exit.oom_child == "unknown" ? "" : " (" + Short(exit.oom_child, 80) + ")";
  Cause cause = OutOfMemory(evidence, "");
  cause.kind = "completed";
  cause.text = "a child process was killed for memory" + who + "; the script ended with 0 anyway";
  cause.hint = "check that the results are complete\n" + cause.hint;
  return cause;
}

// The script's own account (the SageMaker contract) is the best message there is,
// but the class stays what the evidence says.
Cause WithFailureFile(Cause cause, const std::string& failure) {
  std::vector<std::string> lines;
  for (std::string& line : PlainLines(failure.substr(0, 16'384), 100)) {
    if (!Trim(line).empty()) lines.push_back(Short(Trim(line), 500));
  }
  if (lines.empty()) return cause;
  const bool telling =
      !EndsWith(lines[0], ":") && lines[0].find("Traceback (most") == std::string::npos;
  if (telling && (cause.kind == "python_exception" || cause.kind == "nonzero_exit")) {
    cause.text = lines[0];
  }
  if (cause.detail.empty()) cause.detail = Join(lines, "\n").substr(0, 4'096);
  return cause;
}

}  // namespace

Cause Diagnose(const EndEvidence& evidence) {
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
  // It was told to stop, and had finished its work: athanor.done() is its word for that.
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

Cause ForJob(Cause cause, const std::string& job_name) {
  cause.hint = ReplaceAll(std::move(cause.hint), "{job}", ShellQuote(job_name));
  return cause;
}

}  // namespace athanor
