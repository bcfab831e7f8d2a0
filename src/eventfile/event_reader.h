// EventReader reads an event file as it grows: each Poll() returns the complete records that are
// there now and stops at a torn tail, where the next call continues. Damage is skipped and reported
// with its position; after a bad length, it searches for the next valid record. Threads: one. Reads
// with pread only, so the writer may do anything to the file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "eventfile/tfrecord.h"

namespace athanor {

struct EventDamage {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class EventReader {
 public:
  // A record longer than `longest` is skipped: records must fit in memory.
  explicit EventReader(UniqueFd fd, uint64_t longest = kMaxTfRecord)
      : fd_(std::move(fd)), longest_(longest) {}

  // `on_record` gets the position and the payload of each record; it is called until about `most`
  // bytes were read. True: there is more to read now. Errors: only those of reading.
  Result<bool> Poll(const std::function<void(uint64_t offset, std::string_view payload)>& on_record,
                    uint64_t most = UINT64_MAX);

  uint64_t offset() const { return offset_; }  // of the next record
  // What was skipped so far, in order; neighbours are merged.
  const std::vector<EventDamage>& damage() const { return damage_; }
  // Bytes after the last record: a torn tail, or one that is being written.
  uint64_t tail() const { return held_; }
  int fd() const { return fd_.get(); }

 private:
  void HandOut(const std::function<void(uint64_t offset, std::string_view payload)>& on_record);
  // How much cannot be read as a record; 0 if more bytes are needed to decide.
  size_t PassDamage(std::string_view rest);
  void Damaged(uint64_t bytes);

  UniqueFd fd_;
  uint64_t longest_;
  uint64_t offset_ = 0;  // of buffer_'s first byte
  std::string buffer_;   // its first held_ bytes count
  size_t held_ = 0;
  size_t wanted_ = 0;
  std::vector<EventDamage> damage_;
};

}  // namespace athanor
