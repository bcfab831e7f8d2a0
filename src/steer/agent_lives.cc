#include "steer/agent_lives.h"

namespace athanor {

void AgentLives::Launched(Millis now) {
  launched_ = now;
  heard_.reset();
}

void AgentLives::Heard(Millis now) {
  // An agent that an earlier server started is known from its first report on.
  if (!launched_) launched_ = now;
  heard_ = now;
}

bool AgentLives::Another() {
  if (heard_ && *heard_ - *launched_ >= kLasted) {
    unheard_ = short_ = 0;
    return true;
  }
  unheard_ = heard_ ? 0 : unheard_ + 1;
  return unheard_ <= kMostUnheard && ++short_ <= kMostShort;
}

}  // namespace athanor
