#include "launch/backends.h"

#include <utility>

namespace athanor {

void Backends::Add(Backend& backend, Inventory inventory) {
  entries_.push_back({backend, std::move(inventory)});
}

Backend* Backends::Find(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry.backend.name() == name) return &entry.backend;
  }
  return nullptr;
}

}  // namespace athanor
