// EventCopy writes the stored copy of an event file: the complete records of the script's file, one
// after the other, after secrets were removed. A new agent reads the script's file from the
// beginning again and skips what the copy has: by number, because a record may have another length
// than the script's. What could not be stored, on a full disk or because the server is away, waits.
//
// Threads: one, and the queue's. The queue ends before the copy does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/mutex.h"
#include "link/job_files.h"
#include "run/events/store_queue.h"

namespace athanor {

class EventCopy {
 public:
  // Bytes of all copies of a run that may wait to be stored.
  static constexpr uint64_t kMostWaiting = 32u << 20;

  struct Options {
    JobFiles& files;
    StoreQueue& queue;
    std::atomic<uint64_t>& waiting;              // bytes, of all copies
    std::function<Result<std::string>()> place;  // the entry's name, on the queue
    std::function<void()> opened;                // the entry is known, on the queue
    // No copy was begun: what is added need not wait until the server says how far it goes.
    bool is_new = false;
  };
  explicit EventCopy(Options options) : options_(std::move(options)), opened_(options_.is_new) {}

  // Stores what was added. True: more may be added now; false: later, because the copy is being
  // opened, too much waits, or it is tried again. An error: a try failed, told once; the next call
  // tries again.
  Result<bool> Flush();
  void Add(std::string_view payload);
  // The entry is not what was stored, as after the server's disk lost its last writes: the script's
  // file is to be read from its beginning, with another copy.
  bool lost() const;

 private:
  void Store();
  Status Open();
  Status Continue();
  bool StorePiece();
  void Failed(const Error& error) REQUIRES(mutex_);

  const Options options_;
  std::string name_;   // the queue's; empty: not known yet
  uint64_t size_ = 0;  // of what is stored; the queue's

  mutable Mutex mutex_;
  bool opened_ GUARDED_BY(mutex_) = false;  // how much there is, is known
  bool placed_ GUARDED_BY(mutex_) = false;
  bool busy_ GUARDED_BY(mutex_) = false;  // the queue has its task
  bool lost_ GUARDED_BY(mutex_) = false;
  uint64_t passed_ GUARDED_BY(mutex_) = 0;  // records that exist and will come again
  std::string buffer_ GUARDED_BY(mutex_);
  bool failing_ GUARDED_BY(mutex_) = false;        // the last try failed
  std::optional<Error> error_ GUARDED_BY(mutex_);  // of it, until it was told
};

}  // namespace athanor
