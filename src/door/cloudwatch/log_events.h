// A job's log as CloudWatch shows it: one event per line, all streams of a host merged in the
// store's order, progress bars (`\r`) collapsed to their last state. Pure.
//
// What an event is depends only on the store, never on where reading began, because clients ask
// again from a time and count. So a line is identified by the entry in which it ends, times never
// go back, and a reader that begins at FirstOfBlock() or at `from` of a position makes the same
// events as one that began at 0. The price: a line that is still open where a block of entries ends
// is cut in two there.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "record/logs/log_store.h"

namespace athanor {

inline constexpr uint64_t kEventBlock = 512;        // entries
inline constexpr size_t kLongestEvent = 256 << 10;  // bytes; the rest is left out, with a note
inline constexpr int64_t kLatestTime = 253'402'300'799'000;  // the end of 9999

constexpr uint64_t FirstOfBlock(uint64_t entry) { return entry - entry % kEventBlock; }

struct LogEvent {
  int64_t time_ms = 0;  // when the line was complete; never less than an earlier event's
  std::string text;     // without its line end; any bytes
  uint64_t entry = 0;   // of the store, in which it ends
  uint32_t number = 0;  // among the events that end there
};

// Before the event (entry, number). Reading begins at `from`, with the time `floor_ms`.
struct LogPosition {
  uint64_t entry = 0;
  uint32_t number = 0;
  uint64_t from = 0;
  int64_t floor_ms = 0;

  auto operator<=>(const LogPosition&) const = default;
  bool Passed(const LogEvent& event) const {
    return std::tie(event.entry, event.number) < std::tie(entry, number);
  }
  static LogPosition At(uint64_t entry) { return {entry, 0, FirstOfBlock(entry), 0}; }
  static LogPosition After(const LogEvent& event) {
    return {event.entry, event.number + 1, FirstOfBlock(event.entry), event.time_ms};
  }

  // "12-3-0-1763260000000"; reads only what it writes.
  std::string ToString() const;
  static std::optional<LogPosition> Parse(std::string_view text);
};

class LogEvents {
 public:
  explicit LogEvents(uint32_t host = 0, int64_t floor_ms = 0) : host_(host), floor_ms_(floor_ms) {}

  // Entries of all hosts in order, without gaps; appends the events that they complete on this one.
  void Add(const LogEntry& entry, std::vector<LogEvent>& events);
  // No more will follow: a line that is still open is an event.
  void Finish(std::vector<LogEvent>& events);
  // Just after everything made so far.
  LogPosition Position() const;

 private:
  using Key = std::tuple<uint32_t, uint32_t, LogStream>;  // attempt, rank
  struct Open {
    std::string text;
    uint64_t left_out = 0;
    uint64_t began = 0;     // entry of its first byte
    bool returned = false;  // what comes next overwrites it
  };

  void Append(Open& open, std::string_view bytes) const;  // no line end in them
  void Close(Open& open, std::vector<LogEvent>& events);
  // What is open of attempts before `attempt`: nothing more follows there.
  void CloseBefore(uint32_t attempt, std::vector<LogEvent>& events);

  uint32_t host_ = 0;
  std::map<Key, Open> open_;
  std::optional<uint64_t> at_;  // the last entry
  uint32_t number_ = 0;         // events that ended there
  uint64_t began_ = 0;          // the first entry that any of those needed
  int64_t floor_ms_ = 0;
};

}  // namespace athanor
