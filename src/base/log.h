// The program's own log, one JSON object per line:
//   {"time":"...","level":"info","message":"listening","port":"7070"}
// A Logger is passed to the code that uses it; there is no global one. It is not for the logs of
// jobs, and no secret may be passed to it.
//
// Threads: Log is safe from any thread; a line is one write. What cannot be
// written is dropped, since a full disk must not stop the server.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/exec/clock.h"
#include "base/exec/mutex.h"

namespace athanor {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

std::string_view NameOf(LogLevel level);
// "debug", "info", "warning" or "warn", "error", "off"; kInfo for anything else.
LogLevel LogLevelNamed(std::string_view name);

class Logger {
 public:
  using Fields = std::initializer_list<std::pair<std::string_view, std::string>>;

  // Borrows `fd` and `clock`. The level comes from the environment variable ATHANOR_LOG.
  Logger(int fd, const Clock& clock);
  Logger(int fd, const Clock& clock, LogLevel least);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool Wants(LogLevel level) const { return level >= least_; }
  void Log(LogLevel level, std::string_view message, Fields fields = {});

 private:
  const int fd_;
  const Clock& clock_;
  const LogLevel least_;
  Mutex mutex_;  // keeps the pieces of a partial write together
};

}  // namespace athanor
