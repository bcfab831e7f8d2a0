// Backends are the back ends that a server may use, by name, each with what it has to give.
// Placement::backend chooses one; the queue plans over all of them, in the order they were added.
//
// Threads: added to before the engine starts, and only read after that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/inventory.h"
#include "launch/backend.h"

namespace athanor {

class Backends {
 public:
  struct Entry {
    Backend& backend;  // outlives this
    Inventory inventory;
    std::string name() const { return std::string(backend.name()); }
  };

  // Its name must not be taken.
  void Add(Backend& backend, Inventory inventory);
  // Null: no back end of that name.
  Backend* Find(std::string_view name) const;
  const std::vector<Entry>& all() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace athanor
