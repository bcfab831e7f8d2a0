#include "base/log.h"

#include <nlohmann/json.hpp>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/text/json.h"

namespace athanor {
namespace {

LogLevel LevelOfEnvironment() {
  const char* value = std::getenv("ATHANOR_LOG");
  return LogLevelNamed(value == nullptr ? "" : value);
}

}  // namespace

std::string_view NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "info";
}

LogLevel LogLevelNamed(std::string_view name) {
  if (name == "warn") return LogLevel::kWarning;
  for (const auto level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kOff}) {
    if (name == NameOf(level)) return level;
  }
  return LogLevel::kInfo;
}

Logger::Logger(int fd, const Clock& clock) : Logger(fd, clock, LevelOfEnvironment()) {}

Logger::Logger(int fd, const Clock& clock, LogLevel least)
    : fd_(fd), clock_(clock), least_(least) {}

void Logger::Log(LogLevel level, std::string_view message, Fields fields) {
  if (level == LogLevel::kOff || !Wants(level)) return;
  Json line = Json::object();
  line["time"] = Rfc3339(clock_.Wall());
  line["level"] = std::string(NameOf(level));
  line["message"] = std::string(message);
  for (const auto& [key, value] : fields) line[std::string(key)] = value;
  const std::string text = DumpJson(line) + "\n";
  MutexLock lock(mutex_);
  if (!WriteAll(fd_, text).ok()) return;
}

}  // namespace athanor
