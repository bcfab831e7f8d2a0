// Blobs that agents of this machine fetched from a server elsewhere, at <dir>/ab/<sha256>: of a
// source of which one file was changed, only that file travels. What is larger than a file of a
// source usually is, is not kept. Nothing is synced: bytes are checked when they are taken, and
// what a power cut damaged is as good as not there.
//
// Threads: safe from any thread and process.
#pragma once

#include <cstdint>
#include <string>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

class BlobCache {
 public:
  static constexpr uint64_t kLargest = 64u << 20;  // of one blob
  struct Limits {
    uint64_t bytes = 2ull << 30;
    uint64_t files = 50'000;
  };

  explicit BlobCache(std::string dir) : dir_(std::move(dir)) {}
  // Below the cache of a machine, next to its sources.
  static BlobCache Of(const std::string& cache_dir);

  // By name only.
  bool Has(const std::string& sha256) const;
  // The checked bytes, at their beginning; none: they are not here. They count as used now.
  UniqueFd Take(const std::string& sha256) const;
  // Keeps the bytes of `fd`, which has them all and is not written any more. Where that fails
  // nothing is lost: they are fetched again.
  void Keep(const std::string& sha256, int fd) const;
  // Removes what was used longest ago while there is more than `limits`.
  void Trim(const Limits& limits) const;
  // Removes what was not used since then. Returns its bytes.
  uint64_t Sweep(WallTime unused_since, bool dry_run) const;

 private:
  struct Kept;
  std::string PathOf(const std::string& sha256) const;
  template <class Visit>
  void ForEach(Visit visit) const;

  std::string dir_;
};

}  // namespace athanor
