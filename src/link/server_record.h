// What a home stores about its server while one runs: who started it and where it listens. A server
// that is asked to stop removes the record first. So a record without a server means that the
// server was killed or crashed. Whoever notices may start it again, if a command had started it. A
// server that was started by `ath serve` or as a service is not started again from here.
//
// Who notices: a command that waits (cli/lost_server.h), the spare agent, whose connection ends
// with the server, and agents with an attempt. All of them may try at once: the home's lock lets
// only one in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/exec/clock.h"
#include "base/result.h"

namespace athanor {

enum class StartedBy { kCommand, kHand, kService };
const char* NameOf(StartedBy by);  // "command", "hand", "service"

struct ServerRecord {
  StartedBy by = StartedBy::kHand;
  int64_t pid = 0;
  std::string url;
  std::string again;  // what to type to start it as it was started
  std::string moved;  // why it does not listen at its earlier address; for a person
  int64_t started_ms = 0;
  int revivals = 0;  // in a row, each soon after the last one
};

std::string ServerRecordPath(const std::string& home);
Status WriteServerRecord(const std::string& home, const ServerRecord& record);
// None: no server runs, or it was asked to stop.
std::optional<ServerRecord> ReadServerRecord(const std::string& home);
void RemoveServerRecord(const std::string& home);

// How long to wait before starting the server again: longer each time, in case it keeps dying.
Millis PauseBeforeRevival(const ServerRecord& record);

// The file of the running program; after an upgrade in place, the new one.
std::string ThisProgram();

// The server of `home` was killed, and any process may start it again.
bool MayReviveServer(const std::string& home);
// Starts `program` as the server of `home`, if MayReviveServer. Returns once the program runs, not
// when it answers; the process is the caller's child. kConflict: there is nothing to revive.
Result<pid_t> ReviveServer(const std::string& home, const std::string& program);

}  // namespace athanor
