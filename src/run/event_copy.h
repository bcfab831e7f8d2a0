// EventCopy writes the kept copy of an event file: the records that are whole in the script's file,
// one after the other, as they left the gate. A new agent reads the script's file from its begin
// again, so what the copy has is passed over: by number, since a record may have another length
// than the script's.
// Threads: one. What a full disk did not take waits for the next Flush.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace athanor {

class EventCopy {
 public:
  // Goes on with the copy at `path` if there is one; a torn end is cut off.
  static Result<EventCopy> Open(const std::string& path);

  void Add(std::string_view payload);
  Status Flush();

 private:
  explicit EventCopy(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  uint64_t passed_ = 0;  // records that are there and will come again
  uint64_t size_ = 0;
  std::string buffer_;
};

}  // namespace athanor
