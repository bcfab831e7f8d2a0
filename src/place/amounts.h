// CPUs, memory and GPUs as plain sums: what a machine has, what is free, what a job needs of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "job/inventory.h"
#include "job/record.h"
#include "place/need.h"

namespace athanor {

struct Amounts {
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpus = 0;

  static Amounts Of(const Inventory& all) { return {all.cpu_millis, all.memory_bytes, all.gpus}; }
  // Of all its nodes.
  static Amounts Of(const Need& need) {
    uint64_t memory = 0;
    if (__builtin_mul_overflow(need.memory_bytes, uint64_t{need.nodes}, &memory)) memory = ~0ull;
    return {uint64_t{need.cpu_millis} * need.nodes, memory, uint64_t{need.gpus} * need.nodes};
  }
  static Amounts Of(const Placement& held) {
    return {held.cpu_millis, held.memory_bytes, held.gpus.size()};
  }

  bool Holds(const Amounts& other) const {
    return other.cpu_millis <= cpu_millis && other.memory_bytes <= memory_bytes &&
           other.gpus <= gpus;
  }
  Amounts Plus(const Amounts& other) const {
    return {cpu_millis + other.cpu_millis, memory_bytes + other.memory_bytes, gpus + other.gpus};
  }
  // What is left, never below zero (the machine may have become smaller than its jobs).
  Amounts Minus(const Amounts& other) const {
    const auto left = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
    return {left(cpu_millis, other.cpu_millis), left(memory_bytes, other.memory_bytes),
            left(gpus, other.gpus)};
  }
  // What `other` has and this does not.
  Amounts MissingFor(const Amounts& other) const { return other.Minus(*this); }
  // How many nodes of this need there is room for.
  uint64_t NodesOf(const Need& need) const {
    uint64_t nodes = need.nodes;
    const auto at_most = [&nodes](uint64_t have, uint64_t each) {
      if (each > 0) nodes = std::min(nodes, have / each);
    };
    at_most(cpu_millis, need.cpu_millis);
    at_most(memory_bytes, need.memory_bytes);
    at_most(gpus, need.gpus);
    return nodes;
  }
  bool Shares(const Amounts& other) const {
    return (cpu_millis > 0 && other.cpu_millis > 0) ||
           (memory_bytes > 0 && other.memory_bytes > 0) || (gpus > 0 && other.gpus > 0);
  }
};

}  // namespace athanor
