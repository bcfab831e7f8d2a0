// What a machine has: counted once at start, never oversubscribed.
#pragma once

#include <cstdint>
#include <string>

namespace athanor {

struct Inventory {
  std::string host;
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;  // what jobs can use, without the system's share
  uint32_t gpus = 0;
  std::string gpu_model;
  bool operator==(const Inventory&) const = default;
};

}  // namespace athanor
