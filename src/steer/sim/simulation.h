// One history of the control logic: the real Engine, Decide, queue and JobStore, in virtual
// time, on a fake cluster of fifty machines, with users, gangs, loss, delay, duplicates, pauses,
// cut-off machines, crashes of machines, agents and the server. The same seed gives the same
// history.
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

// The store is made in `dir`, which must be empty. `jobs`: how many; 0: as the seed says.
Outcome Simulate(uint64_t seed, const std::string& dir, bool trace = false, size_t jobs = 0);

}  // namespace athanor::sim
