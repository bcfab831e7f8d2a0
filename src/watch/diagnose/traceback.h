// Reads Python tracebacks out of the end of a log: plain, chained ("During handling", "direct
// cause"), SyntaxError's short form, exception groups, those of worker processes, those with a
// prefix on every line ("[rank0]: "), and the forms of rich and IPython. Also the stacks that
// faulthandler prints at a crash. Never fails: what cannot be read is left out. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace athanor {

struct Frame {
  std::string file;
  int64_t line = 0;
  std::string function;  // empty in SyntaxError's form
  std::string code;      // the source line, if it was shown
  bool user = false;     // neither an installed package nor the standard library
};

struct PythonError {
  // How it follows from the error before it in the chain.
  enum class Link { kNone, kDuringHandling, kDirectCause };
  std::string type;           // "ValueError", "torch.cuda.OutOfMemoryError"
  std::string message;        // first line, or two when the first ends in ':'
  std::string rest;           // the indented lines of the message that follow
  std::vector<Frame> frames;  // outermost first
  Link link = Link::kNone;
};

// Who printed a traceback, by the line before it.
enum class Told {
  kPlain,    // nothing before it: Python itself, or traceback.print_exc()
  kLogged,   // a log record: logging.exception()
  kAside,    // a thread, a task or a child process; the main program continues
  kIgnored,  // atexit, __del__, logging's own errors: never ends a program
};

// One chain. The last error of `chain` is the one that was raised to the top.
struct Traceback {
  std::vector<PythonError> chain;
  std::vector<PythonError> members;  // of an exception group
  Told told = Told::kPlain;
  size_t begin = 0;        // its first line in PlainLines(log)
  size_t end = 0;          // after its last line there
  size_t lines_after = 0;  // non-empty ones after it in the log, up to the end

  const PythonError& last() const { return chain.back(); }
  // The frames that lead to the cause: the worker's own if the last error only carried it over from
  // another process.
  const std::vector<Frame>& frames() const;
};

// All of the log, in its order; at most the last 64.
std::vector<Traceback> ParseTracebacks(std::string_view log);
std::optional<Traceback> ParseTraceback(std::string_view log);  // the last one

struct CrashStack {
  std::string what;           // "Segmentation fault"
  std::vector<Frame> frames;  // innermost first, as faulthandler prints them
};
std::optional<CrashStack> ParseCrashStack(std::string_view log);

// One thread of what faulthandler writes on request ("Thread 0x… (most recent call first):"). A
// thread outside Python has no frames.
struct ThreadStack {
  bool current = false;       // the one that took the signal
  std::vector<Frame> frames;  // innermost first
};
// In the order they were written, at most 1,000; the main thread is the last.
std::vector<ThreadStack> ParseThreadStacks(std::string_view text);

// Without colour codes and carriage returns; the last `max` lines.
std::vector<std::string> PlainLines(std::string_view log, size_t max = 400);
bool IsUserFile(std::string_view file);

}  // namespace athanor
