// One history of the control logic: the real Engine, Decide, queue and JobStore, in virtual
// time, on a fake cluster of fifty hosts, with users, loss, delay, duplicates, pauses, cut-off
// hosts, crashes of hosts, agents and the server. The same seed gives the same history.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace athanor::sim {

struct Outcome {
  std::string broken;  // the first promise that did not hold; empty: all did
  std::vector<std::string> trace;
  size_t jobs = 0;
  size_t attempts = 0;
  int lives = 0;       // of the server
  uint64_t turns = 0;  // tasks that ran
};

// The store is made in `dir`, which must be empty.
Outcome Simulate(uint64_t seed, const std::string& dir, bool trace = false);

}  // namespace athanor::sim
