// DiskReserve keeps a file of so many bytes that is given up when the disk is full,
// so that the little which must still be written (how running jobs ended) can be.
// It is made again once there is plenty of room.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>

namespace athanor {

class DiskReserve {
 public:
  static constexpr uint64_t kTimes = 4;

  // Makes the file now if there is room for kTimes its size.
  DiskReserve(std::string path, uint64_t bytes);
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  // Gives the bytes back to the disk. False when they were given back before.
  bool Release();
  // As at the beginning; nothing to do while the file is there.
  void Refill();
  bool held() const { return held_; }

 private:
  const std::string path_;
  const uint64_t bytes_;
  bool held_ = false;
};

}  // namespace athanor
