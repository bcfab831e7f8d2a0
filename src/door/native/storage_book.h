// StorageBook knows what uses how much of the disk. This reads every file, which with a million
// runs takes seconds. So it is done on request, for all who ask meanwhile, and not again until
// twenty times as long has passed.
//
// Threads: safe from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/pool.h"
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
  // `count` reads the files; tests use another function.
  using Count = std::function<StorageUse()>;
  StorageBook(const Clock& clock, Pool& pool, Count count);
  ~StorageBook();

  // Calls `done` here or on a thread of the pool; with null if that has stopped.
  void Ask(std::function<void(const StorageUse*)> done);

 private:
  struct Parts;
  Pool& pool_;
  std::shared_ptr<Parts> parts_;  // shared with a count that is in progress
};

StorageUse CountStorage(const StoreLayout& layout, const Clock& clock);

}  // namespace athanor
