// A LogFollower reads one raw stream file as it grows, scrubs it, and returns the part that the
// server has not acknowledged yet. Offsets are of scrubbed bytes. Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "watch/scrub/scrubber.h"

namespace athanor {

class LogFollower {
 public:
  // `seen` gets every scrubbed byte once, in order, when it is read to be sent; `shown`: it was
  // shown by LookAhead before.
  using Seen = std::function<void(std::string_view bytes, bool shown)>;
  using Show = std::function<void(std::string_view bytes)>;
  LogFollower(std::string path, std::shared_ptr<const SecretPatterns> patterns, Seen seen);

  // Reads what is new, while less than `most` bytes wait. True if there was anything.
  bool Read(size_t most, Millis now);
  // Shows what neither Read nor an earlier call returned, without keeping it: Read returns it
  // again. For code that must not wait until it can be sent. About `most` bytes per call.
  void LookAhead(size_t most, const Show& show);
  uint64_t seen() const { return seen_offset_; }  // bytes that Read returned
  uint64_t unread() const;                        // raw bytes that wait in the file
  bool looks_ahead() const { return ahead_.has_value(); }
  // What to send now: whole lines, or everything once the last byte is older than
  // `patience` (a progress bar) or `all` is set.
  std::string_view Sendable(Millis now, Millis patience, bool all) const;
  uint64_t offset() const { return acknowledged_; }
  // The server has `length` bytes of this stream.
  void Acknowledge(uint64_t length);
  // The writer has ended: the rest that the scrubber held back belongs to the stream.
  void Finish();
  bool finished() const { return finished_; }
  bool drained() const;  // finished, all read and acknowledged

 private:
  struct Ahead {
    Scrubber scrubber;
    uint64_t raw_offset;
    uint64_t produced;
  };

  void Take(std::string_view made);
  void StartAnew();

  std::string path_;
  std::shared_ptr<const SecretPatterns> patterns_;
  Seen seen_;
  Scrubber scrubber_;
  UniqueFd fd_;
  uint64_t raw_offset_ = 0;
  uint64_t seen_offset_ = 0;    // handed to seen_ so far, over all restarts
  uint64_t shown_offset_ = 0;   // shown by LookAhead so far
  std::optional<Ahead> ahead_;  // while LookAhead is before Read
  uint64_t produced_ = 0;       // scrubbed bytes made since (re)start
  uint64_t acknowledged_ = 0;   // offset of pending_'s first byte
  uint64_t skip_ = 0;           // bytes that the server has but we have not made yet
  std::string pending_;
  Millis last_byte_{0};
  bool at_end_ = false;
  bool finished_ = false;
};

}  // namespace athanor
