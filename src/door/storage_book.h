// StorageBook knows what takes how much of the disk. Every file is looked at for it, which with a
// million runs takes seconds: it is looked at when somebody asks, for all who ask meanwhile, and
// not again until twenty times as long has passed.
//
// Threads: safe from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/pool.h"
#include "record/layout.h"

namespace athanor {

struct StorageUse {
  struct Part {
    std::string name;
    std::string path;
    uint64_t bytes = 0;
  };
  std::vector<Part> parts;
  uint64_t bytes = 0;  // of all
  WallTime counted;
};

class StorageBook {
 public:
  // `count` is what looks at the files; tests give another.
  using Count = std::function<StorageUse()>;
  StorageBook(const Clock& clock, Pool& pool, Count count);
  ~StorageBook();

  // Calls `done` here or on a thread of the pool; with null when that has stopped.
  void Ask(std::function<void(const StorageUse*)> done);

 private:
  struct Parts;
  Pool& pool_;
  std::shared_ptr<Parts> parts_;  // shared with a count that is under way
};

StorageUse CountStorage(const StoreLayout& layout, const Clock& clock);

}  // namespace athanor
