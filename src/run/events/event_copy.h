// EventCopy writes the stored copy of an event file: the complete records of the script's file, one
// after the other, after secrets were removed. A new agent reads the script's file from the
// beginning again and skips what the copy has: by number, because a record may have another length
// than the script's. Threads: one. What did not fit on a full disk waits for the next Flush.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

class EventCopy {
 public:
  // Continues the copy at `path` if there is one; a torn end is cut off.
  static Result<EventCopy> Open(const std::string& path);

  void Add(std::string_view payload);
  Status Flush();

 private:
  explicit EventCopy(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  uint64_t passed_ = 0;  // records that exist and will come again
  uint64_t size_ = 0;
  std::string buffer_;
};

}  // namespace athanor
