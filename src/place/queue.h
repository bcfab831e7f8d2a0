// The queue: which job runs next on this machine, and why the others wait. Plan() is pure and
// deterministic; it keeps nothing between calls. The caller commits its decisions and calls again
// when something changed.
//
// Order: higher priority first, then earlier submission, then id. The first job that does not fit
// is the head of the line; jobs after it may start (back-fill) only if that cannot delay it: - when
// every running job it waits for has a known latest end, the head has a
//    start time. A later job may start if it surely ends before that time, or
//    uses only what the head will leave free then;
//  - otherwise, and when the head was overtaken more than kMaxOvertaken times or
//    waits longer than kMaxHeadWait, a later job may use only what is free beyond
//    the head's whole need.
//
// A job of several nodes is placed as a whole or not at all: its hosts are side by side, and its
// need is that of all of them.
//
// GPUs: one that is reserved has one holder. A job that does not ask for a number (`gpus: auto`)
// reserves none and never waits for one: it sees all GPUs that no job has reserved when it is
// placed, starting with those that the fewest such jobs see first. It keeps seeing them; it does
// not block a job that reserves, which takes the GPUs that the fewest such jobs see.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "job/ids.h"
#include "job/inventory.h"
#include "job/record.h"
#include "place/need.h"

namespace athanor {

inline constexpr uint32_t kMaxOvertaken = 50;
inline constexpr Millis kMaxHeadWait = std::chrono::hours(1);

struct WaitingJob {
  JobId id;
  std::string name;
  int32_t priority = 0;
  WallTime created;
  Need need;
  uint32_t attempts = 0;   // so far
  WallTime not_before;     // back-off; 0: none
  Millis hold_limit{0};    // it gives its room back this long after being placed: set-up, time
                           // limit and stop grace together; 0: unknown
  uint32_t overtaken = 0;  // from the last Decision about it
};

struct RunningJob {
  JobId id;
  std::string name;
  Placement placement;              // of all its hosts together
  std::optional<WallTime> ends_by;  // latest end; none, or one that has passed: not known
};

struct QueueView {
  std::vector<WaitingJob> waiting;  // any order; ids are distinct
  std::vector<RunningJob> running;  // everything that holds room
  Inventory inventory;
  WallTime now;
  std::string backend = "process";  // whose inventory it is
};

struct Decision {
  JobId job;
  std::vector<Placement> hosts;  // start it now, with these; empty: it waits
  // Otherwise why not: waiting_cpus, waiting_memory, waiting_gpus, waiting_turn, backoff or
  // never_fits, with amounts in the text. The text changes with the queue; store a new event when
  // the kind changes, not when the text does.
  Cause wait;
  uint32_t overtaken = 0;  // carry into the next WaitingJob
  bool placed() const { return !hosts.empty(); }
};

// What the hosts of an attempt hold together.
Placement Together(const std::vector<Placement>& hosts);

// One decision per waiting job, in the order of `view.waiting`. What it places,
// together with what runs, never exceeds the inventory; no GPU has two holders.
std::vector<Decision> Plan(const QueueView& view);

}  // namespace athanor
