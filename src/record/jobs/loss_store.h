// LossStore adds up, per instance type and market, how long attempts held a machine and how many of
// them lost it. The interruption rate is measured from this. It outlives the jobs that it counted.
//
// Threads: safe from any. A call is one transaction, durable when it returns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

class Database;

struct TypeLosses {
  std::string type;
  bool spot = false;
  int64_t held_ms = 0;
  int64_t losses = 0;
  bool operator==(const TypeLosses&) const = default;
};

class LossStore {
 public:
  explicit LossStore(Database& database) : database_(database) {}

  // One attempt has ended: it held a machine for `held_ms` (negative counts as none), and lost it
  // or not.
  Status Add(std::string_view type, bool spot, int64_t held_ms, bool lost);
  // Zeros if nothing is known about that type.
  Result<TypeLosses> Of(std::string_view type, bool spot) const;
  Result<std::vector<TypeLosses>> All() const;  // by type, then market

 private:
  Database& database_;
};

}  // namespace athanor
