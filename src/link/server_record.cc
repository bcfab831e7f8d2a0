#include "link/server_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/exec/process.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "record/layout.h"

namespace athanor {
namespace {

constexpr size_t kMostBytes = 64 << 10;
// If someone ends all processes of a home, one after the other, no new ones appear meanwhile.
constexpr Millis kFirstPause{300};
constexpr Millis kLongestPause{60'000};

// The environment of this process, except the home.
std::vector<std::string> EnvironmentWith(const std::string& home) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    if (!StartsWith(*entry, "ATHANOR_HOME=")) all.emplace_back(*entry);
  }
  all.push_back("ATHANOR_HOME=" + home);
  return all;
}

// A value is one line; a line break in it would make another field.
std::string Field(std::string_view name, const std::string& value) {
  return std::string(name) + " " + ReplaceAll(value, "\n", " ") + "\n";
}

}  // namespace

const char* NameOf(StartedBy by) {
  switch (by) {
    case StartedBy::kCommand:
      return "command";
    case StartedBy::kHand:
      return "hand";
    case StartedBy::kService:
      return "service";
  }
  return "";
}

std::string ServerRecordPath(const std::string& home) { return home + "/server.started"; }

Status WriteServerRecord(const std::string& home, const ServerRecord& record) {
  return ReplaceFile(ServerRecordPath(home),
                     Field("by", NameOf(record.by)) + Field("pid", std::to_string(record.pid)) +
                         Field("url", record.url) + Field("again", record.again) +
                         Field("moved", record.moved) +
                         Field("started", std::to_string(record.started_ms)) +
                         Field("revivals", std::to_string(record.revivals)));
}

std::optional<ServerRecord> ReadServerRecord(const std::string& home) {
  const auto text = ReadFile(ServerRecordPath(home), kMostBytes);
  if (!text) return std::nullopt;
  ServerRecord record;
  for (const auto& line : Split(*text, '\n')) {
    const auto space = line.find(' ');
    if (space == std::string::npos) continue;
    const auto name = line.substr(0, space);
    const auto value = line.substr(space + 1);
    if (name == "pid") record.pid = std::strtoll(value.c_str(), nullptr, 10);
    if (name == "started") record.started_ms = std::strtoll(value.c_str(), nullptr, 10);
    if (name == "revivals") record.revivals = std::atoi(value.c_str());
    if (name == "url") record.url = value;
    if (name == "again") record.again = value;
    if (name == "moved") record.moved = value;
    if (name != "by") continue;
    for (const auto by : {StartedBy::kCommand, StartedBy::kHand, StartedBy::kService}) {
      if (value == NameOf(by)) record.by = by;
    }
  }
  return record;
}

void RemoveServerRecord(const std::string& home) { ::unlink(ServerRecordPath(home).c_str()); }

Millis PauseBeforeRevival(const ServerRecord& record) {
  if (record.revivals <= 0) return kFirstPause;
  return std::min(kLongestPause, Millis(1'000) * (1 << std::min(record.revivals, 10)));
}

std::string ThisProgram() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) return "athanor";
  // What the kernel appends for a file that was replaced.
  constexpr std::string_view kDeleted = " (deleted)";
  std::string found(path, static_cast<size_t>(n));
  if (EndsWith(found, kDeleted)) found.resize(found.size() - kDeleted.size());
  return found;
}

bool MayReviveServer(const std::string& home) {
  const auto record = ReadServerRecord(home);
  if (!record || record->by != StartedBy::kCommand) return false;
  const UniqueFd lock(::open(StoreLayout{home}.lock().c_str(), O_RDONLY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0;
}

Result<pid_t> ReviveServer(const std::string& home, const std::string& program) {
  if (!MayReviveServer(home))
    return Fail(ErrorCode::kConflict, "there is no server to start again");
  // Not created again: a home that is being removed stays removed.
  const std::string path = home + "/server.log";
  const UniqueFd log(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!log) return FailErrno("open " + path, errno);
  DetachedOptions options;
  options.cwd = "/";
  options.environment = EnvironmentWith(home);
  return SpawnDetached({program, "serve", "--revive"}, log.get(), options);
}

}  // namespace athanor
