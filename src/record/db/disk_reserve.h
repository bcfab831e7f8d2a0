// DiskReserve keeps a file of a given size that is released when the disk is full, so that what
// must still be written (how running jobs ended) can be. It is created again when there is plenty
// of room.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>

namespace athanor {

class DiskReserve {
 public:
  static constexpr uint64_t kTimes = 4;

  // Creates the file now if there is room for kTimes its size.
  DiskReserve(std::string path, uint64_t bytes);
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  // Releases the bytes. False if they were released before.
  bool Release();
  // As at the beginning; does nothing while the file exists.
  void Refill();
  bool held() const { return held_; }

 private:
  const std::string path_;
  const uint64_t bytes_;
  bool held_ = false;
};

}  // namespace athanor
