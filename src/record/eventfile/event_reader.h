// EventReader reads an event file as it grows: each Poll() hands out the whole records that are
// there now and stops at a torn tail, from which the next one goes on. Damage is stepped over and
// told with its place; after a bad length the next record that is whole in itself is looked for.
// Threads: one. Reads with pread only: the writer may do to the file whatever it likes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "record/eventfile/tfrecord.h"

namespace athanor {

struct EventDamage {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class EventReader {
 public:
  // A record longer than `longest` is stepped over unread: it must fit in memory.
  explicit EventReader(UniqueFd fd, uint64_t longest = kMaxTfRecord)
      : fd_(std::move(fd)), longest_(longest) {}

  // `on_record` gets the place and the payload of each record; it is called until about `most`
  // bytes were read. True: there is more to be had now. Errors are those of reading.
  Result<bool> Poll(const std::function<void(uint64_t offset, std::string_view payload)>& on_record,
                    uint64_t most = UINT64_MAX);

  uint64_t offset() const { return offset_; }  // of the next record
  // Of what was passed over so far, in order; neighbours are one.
  const std::vector<EventDamage>& damage() const { return damage_; }
  // Bytes behind the last record: a torn tail, or one that is being written.
  uint64_t tail() const { return held_; }
  int fd() const { return fd_.get(); }

 private:
  void HandOut(const std::function<void(uint64_t offset, std::string_view payload)>& on_record);
  // How much cannot be read as a record; 0 when more bytes are needed to tell.
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
