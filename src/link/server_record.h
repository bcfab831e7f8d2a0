// What a home keeps about its server while one runs there: who started it and where it listens.
// A server that was asked to end removes the record first. So a record without a server means that
// the server was killed, or crashed, and whoever notices may start it again, if it was a command
// that had started it. `ath serve` and services are somebody else's to start again.
//
// Who notices: a verb that waits (cli/lost_server.h), the spare agent, whose connection ends with
// the server, and agents with an attempt. All of them may try at once: the home's lock lets one in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace athanor {

enum class StartedBy { kCommand, kHand, kService };
const char* NameOf(StartedBy by);  // "command", "hand", "service"

struct ServerRecord {
  StartedBy by = StartedBy::kHand;
  int64_t pid = 0;
  std::string url;
  std::string again;  // what to type to start it as it was started
  std::string moved;  // why it does not listen where it did before; for a person
  int64_t started_ms = 0;
  int revivals = 0;  // in a row, each soon after the one before
};

std::string ServerRecordPath(const std::string& home);
Status WriteServerRecord(const std::string& home, const ServerRecord& record);
// None: no server runs, or it was asked to end.
std::optional<ServerRecord> ReadServerRecord(const std::string& home);
void RemoveServerRecord(const std::string& home);

// How long whoever notices waits before it starts the server again: longer each time, should it die
// again and again.
Millis PauseBeforeRevival(const ServerRecord& record);

// The file of the program that runs; after an upgrade in its place, the new one.
std::string ThisProgram();

// The server of `home` was killed and may be started again by anybody.
bool MayReviveServer(const std::string& home);
// Starts `program` as the server of `home`, if MayReviveServer. Returns once the program runs, not
// when it answers; the process is the caller's child. kConflict: there is nothing to revive.
Result<pid_t> ReviveServer(const std::string& home, const std::string& program);

}  // namespace athanor
