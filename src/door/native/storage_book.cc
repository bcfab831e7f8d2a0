#include "door/native/storage_book.h"

#include <optional>
#include <utility>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "base/io/tree_bytes.h"

namespace athanor {

struct StorageBook::Parts {
  Parts(const Clock& its_clock, Count its_count) : clock(its_clock), count(std::move(its_count)) {}

  void CountNow() {
    const auto began = clock.Monotonic();
    StorageUse use = count();
    std::vector<std::function<void(const StorageUse*)>> told;
    {
      const MutexLock lock(mutex);
      const auto now = clock.Monotonic();
      good_until = now + 20 * (now - began);
      last = use;
      counting = false;
      told.swap(waiting);
    }
    for (const auto& done : told) done(&use);
  }

  const Clock& clock;
  const Count count;
  Mutex mutex;
  std::optional<StorageUse> last GUARDED_BY(mutex);
  Millis good_until GUARDED_BY(mutex){0};
  bool counting GUARDED_BY(mutex) = false;
  std::vector<std::function<void(const StorageUse*)>> waiting GUARDED_BY(mutex);
};

StorageBook::StorageBook(const Clock& clock, Pool& pool, Count count)
    : pool_(pool), parts_(std::make_shared<Parts>(clock, std::move(count))) {}
StorageBook::~StorageBook() = default;

void StorageBook::Ask(std::function<void(const StorageUse*)> done) {
  std::optional<StorageUse> known;
  {
    const MutexLock lock(parts_->mutex);
    if (parts_->last && parts_->clock.Monotonic() < parts_->good_until) {
      known = parts_->last;
    } else {
      parts_->waiting.push_back(done);
      if (std::exchange(parts_->counting, true)) return;
    }
  }
  if (known) return done(&*known);
  if (pool_.Submit([parts = parts_] { parts->CountNow(); })) return;
  std::vector<std::function<void(const StorageUse*)>> told;
  {
    const MutexLock lock(parts_->mutex);
    parts_->counting = false;
    told.swap(parts_->waiting);
  }
  for (const auto& refused : told) refused(nullptr);
}

StorageUse CountStorage(const StoreLayout& layout, const Clock& clock) {
  StorageUse use;
  const auto add = [&](const char* name, const std::string& path,
                       const std::vector<std::string>& leave = {}) {
    use.parts.push_back({name, path, TreeBytes(path, leave)});
    use.bytes += use.parts.back().bytes;
  };
  add("logs", layout.logs());
  add("series", layout.series());
  // Logs and series are in the database's folder, and were counted.
  add("database", layout.server(), {BaseName(layout.logs()), BaseName(layout.series())});
  add("blobs", layout.blobs());
  add("objects", layout.objects());
  add("artifacts", layout.artifacts());
  add("attempts", layout.attempts());
  add("cache", JoinPath(layout.root, "cache"));
  use.counted = clock.Wall();
  return use;
}

}  // namespace athanor
