// What is known of the attempts of live jobs and is not worth storing: after a restart it is found
// out again.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/exec/clock.h"
#include "job/ids.h"
#include "steer/agent_lives.h"

namespace athanor {

// Times are monotonic.
struct LiveAttempt {
  JobId job;
  std::vector<AgentLives> agents;  // by host
  std::optional<Millis> launched;  // when agents were last started for it
  std::optional<Millis> some_up;   // since when a part of a gang is up, and a part is missing
  std::optional<Millis> alone;     // since when only hosts that never came up keep it from ending
  bool giving_up = false;          // what is left of it is being ended
  bool armed = false;              // a deliberate interruption is scheduled for it
  std::optional<Millis> rests_until;  // the next attempt of its job starts after that

  AgentLives& agent(uint32_t host) {
    if (agents.size() <= host) agents.resize(host + 1);
    return agents[host];
  }
};
using LiveAttempts = std::map<AttemptId, LiveAttempt>;

}  // namespace athanor
