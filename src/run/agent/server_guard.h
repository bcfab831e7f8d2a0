// What agents do for a server that was killed: they start it again, if a command had started it
// (link/server_record.h). Otherwise, a tuning job would stand still until someone types a command.
// A server that was stopped stays stopped, and a home that was removed stays removed.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/exec/clock.h"

namespace athanor {

// For an agent with an attempt: called each time the server does not answer.
class ServerGuard {
 public:
  // `home`: of the server, empty: unknown. `clock` outlives it.
  ServerGuard(std::string home, const Clock& clock) : home_(std::move(home)), clock_(clock) {}
  // One thread.
  void Unanswered();
  void Answered() { start_at_ = Millis(0); }

 private:
  const std::string home_;
  const Clock& clock_;
  Millis start_at_{0};  // 0: it answered last
  pid_t child_ = 0;
};

// For the spare agent, whose server is gone: returns when it was started again, or must not be.
void StartServerAgain(const std::string& home);

}  // namespace athanor
