// Amounts of one machine as plain sums; shared by the queue and its reasons.
#pragma once

#include <cstdint>

#include "job/inventory.h"
#include "job/record.h"
#include "place/need.h"

namespace athanor {

struct Room {
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpus = 0;

  static Room Of(const Inventory& all) { return {all.cpu_millis, all.memory_bytes, all.gpus}; }
  static Room Of(const Need& need) { return {need.cpu_millis, need.memory_bytes, need.gpus}; }
  static Room Of(const Placement& held) {
    return {held.cpu_millis, held.memory_bytes, held.gpus.size()};
  }

  bool Holds(const Room& other) const {
    return other.cpu_millis <= cpu_millis && other.memory_bytes <= memory_bytes &&
           other.gpus <= gpus;
  }
  Room Plus(const Room& other) const {
    return {cpu_millis + other.cpu_millis, memory_bytes + other.memory_bytes, gpus + other.gpus};
  }
  // What is left, never below zero (the machine may have become smaller than its jobs).
  Room Minus(const Room& other) const {
    const auto left = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
    return {left(cpu_millis, other.cpu_millis), left(memory_bytes, other.memory_bytes),
            left(gpus, other.gpus)};
  }
  // What `other` has and this does not.
  Room MissingFor(const Room& other) const { return other.Minus(*this); }
  bool Shares(const Room& other) const {
    return (cpu_millis > 0 && other.cpu_millis > 0) ||
           (memory_bytes > 0 && other.memory_bytes > 0) || (gpus > 0 && other.gpus > 0);
  }
};

}  // namespace athanor
