// What happened to the agents of one attempt, and whether to start another one. Attempts whose
// agents never report are given up soon; those whose agents report but do not last, later; an agent
// that lasted a while resets the count. Giving up ends a script that may still run, so it is the
// last resort. Pure; times are monotonic. Not thread-safe.
#pragma once

#include <optional>

#include "base/exec/clock.h"

namespace athanor {

class AgentLives {
 public:
  static constexpr int kMostUnheard = 5;          // in a row, that never reported
  static constexpr int kMostShort = 50;           // in a row, that did not last
  static constexpr Millis kLasted = Seconds(60);  // from its start to its last report

  void Launched(Millis now);
  void Heard(Millis now);
  // The newest one is gone: whether to start another.
  bool Another();

 private:
  std::optional<Millis> launched_;
  std::optional<Millis> heard_;
  int unheard_ = 0;
  int short_ = 0;
};

}  // namespace athanor
