// The catalogue knows instance types by name: what they have and what they cost per hour. It is a
// value: made once (built in, plus the user's file), then only read, from any thread. It does not
// know what a job asks for (`place` resolves that) nor what a job has cost (job/record.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/inventory.h"

namespace athanor {

struct InstanceType {
  std::string name;  // "ml.g4dn.xlarge"
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint32_t gpus = 0;
  std::string gpu_model;               // "T4"; empty without GPUs
  uint64_t gpu_memory_bytes = 0;       // of one; 0: not known
  int64_t on_demand_micros = 0;        // millionths of a dollar an hour
  std::optional<int64_t> spot_micros;  // mean over zones; none: not sold that way
  std::string source;                  // "catalogue 2026-08-22", or the user's file
  bool operator==(const InstanceType&) const = default;
};

// Whether a machine has at least the amounts of `type`. The GPU's model is not
// compared: a type says how much, the machine says of what.
bool Fits(const InstanceType& type, const Inventory& inventory);

class Catalogue {
 public:
  // The types of catalogue.csv.
  static const Catalogue& Builtin();
  // The built-in types with the rows of a user's file (same columns) added: a known name is
  // replaced, a new one added. kInvalid with file:line.
  static Result<Catalogue> WithOverrides(std::string_view csv, std::string_view file);

  // kNotFound: the hint names the nearest types.
  Result<InstanceType> Find(std::string_view name) const;
  const std::vector<InstanceType>& All() const { return types_; }  // by name
  // Most GPUs, then CPUs, then memory, then the lower price, then the name.
  std::optional<InstanceType> LargestFitting(const Inventory& inventory) const;

 private:
  explicit Catalogue(std::vector<InstanceType> types);
  std::vector<InstanceType> types_;
};

}  // namespace athanor
