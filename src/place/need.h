// From what a job asks for to what must be reserved for it on this machine. The nodes of a job are
// hosts side by side, so that all of them together must fit.
// Pure: the same spec, catalogue and inventory give the same answer.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "job/inventory.h"
#include "job/spec.h"
#include "price/catalogue.h"

namespace athanor {

// Amounts of each node; those of all nodes are reserved together or not at all.
struct Need {
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;  // 0: none reserved, and no limit
  uint32_t gpus = 0;
  bool simulated = false;  // the type is larger than this machine; clipped to it
  bool auto_gpus = false;  // reserves none, and may use those that no job reserved
  uint32_t nodes = 1;
  uint32_t processes = 1;  // ranks per node, which share its amounts
  bool operator==(const Need&) const = default;
};

// A job that names no amounts gets one CPU for each rank, so that as many run at once as the
// machine has CPUs, and neither a reservation nor a limit of memory: its need is unknown, and a
// guessed limit would kill it.
inline constexpr uint32_t kDefaultCpuMillis = 1'000;
// On a machine with fewer CPUs than ranks they share them, but no node gets less than this.
inline constexpr uint32_t kLeastCpuMillis = 100;

// kInvalid: the amounts or the type, times the nodes, are more than the machine has (the message
// names what it has, the hint what would fit), or both a type and
// amounts are given. kNotFound: no such type. With `simulate`, a type that is
// too large is clipped to the machine and marked; amounts are never clipped.
Result<Need> Resolve(const ResourceSpec& spec, const Catalogue& catalogue,
                     const Inventory& inventory, bool simulate);

std::string CpuText(uint64_t cpu_millis);               // "1 CPU", "0.5 CPUs", "4 CPUs"
std::string MemoryText(uint64_t bytes);                 // "512 MiB", "7.5 GiB"
std::string GpuText(uint64_t gpus);                     // "no GPUs", "1 GPU", "2 GPUs"
std::string InventoryText(const Inventory& inventory);  // "2 CPUs, 24 GiB and no GPUs"

}  // namespace athanor
