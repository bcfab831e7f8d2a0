// CallSpool keeps calls of MLflow clients until the server has accepted them: a queue in files of
// the attempt. A call survives kill -9 of the agent once Append returned, and is on disk after the
// next Sync. Calls have increasing numbers, which are never reused; a call may be delivered again
// after a crash, and is then recognised by its number.
//
// Records are checksummed: one that a dying agent left half-written was never acknowledged and is
// cut off; one that is damaged is skipped with the rest of its file, and `lost()` counts it.
//
// Threads: safe from any; one thread takes calls (First, Next, Done).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/mutex.h"
#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

struct KeptCall {
  uint64_t seq = 0;
  std::string method;  // "POST"
  std::string target;  // "/api/2.0/mlflow/runs/log-metric"
  std::string body;
};

class CallSpool {
 public:
  struct Limits {
    uint64_t file_bytes = 8 << 20;  // a file that has more is followed by another
    uint64_t all_bytes = 1 << 30;   // not yet delivered
  };
  // Continues with what an earlier agent left in `dir`, which is created if needed.
  static Result<std::unique_ptr<CallSpool>> Open(std::string dir, Limits limits);

  // The number of the call. kExhausted: the limit is reached, or the disk is full; nothing is kept
  // then; a later call may succeed.
  Result<uint64_t> Append(std::string_view method, std::string_view target, std::string_view body);
  // The oldest that is not done; none if all are.
  std::optional<KeptCall> First();
  // The one after the last one that First or Next returned; none if there is none, or not in the
  // same file. Not after Done.
  std::optional<KeptCall> Next();
  // Shows what waits, oldest first; of more than `most_bytes` of it, only the newest files. It
  // takes nothing. Before any of it is taken.
  void Show(uint64_t most_bytes, const std::function<void(const KeptCall&)>& show) const;
  // `seq` and all before it are delivered, or given up.
  void Done(uint64_t seq);
  void Sync();

  uint64_t last() const;  // number of the newest call ever
  uint64_t done() const;
  uint32_t channel() const { return channel_; }
  uint64_t lost() const;

 private:
  struct File {
    std::string path;
    UniqueFd fd;
    uint64_t size = 0;
    uint64_t read = 0;  // up to here all is done
  };

  CallSpool(std::string dir, Limits limits) : dir_(std::move(dir)), limits_(limits) {}
  Status Load();
  Status LoadState() REQUIRES(mutex_);
  Status LoadFile(const std::string& name, bool newest) REQUIRES(mutex_);
  Status AddFile() REQUIRES(mutex_);
  std::optional<KeptCall> ReadAt(const File& file, uint64_t offset, uint64_t* next) const;

  const std::string dir_;
  const Limits limits_;
  uint32_t channel_ = 0;
  UniqueFd state_;

  mutable Mutex mutex_;
  std::deque<File> files_ GUARDED_BY(mutex_);  // the last one is written
  // What was given last, in the first file; UINT64_MAX: nothing.
  uint64_t behind_ GUARDED_BY(mutex_) = UINT64_MAX;
  uint64_t last_ GUARDED_BY(mutex_) = 0;
  uint64_t done_ GUARDED_BY(mutex_) = 0;
  uint64_t lost_ GUARDED_BY(mutex_) = 0;
  uint64_t waiting_ GUARDED_BY(mutex_) = 0;  // bytes of calls that are not done
  bool dirty_ GUARDED_BY(mutex_) = false;
};

}  // namespace athanor
