// Server-sent events: writing one, and reading them from bytes as they come. The caller handles
// resuming by Last-Event-ID.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

struct SseEvent {
  std::string id;     // empty: none
  std::string event;  // empty: "message"
  std::string data;   // may have several lines
  bool operator==(const SseEvent&) const = default;
};

// Ends with the empty line that dispatches it. Line ends and NULs in `id` and
// `event` are dropped, since they would forge fields; every line end in `data`
// (LF, CR, CRLF) arrives as LF.
std::string FormatSse(const SseEvent& event);
// A comment line, which readers skip: keeps a quiet connection alive.
std::string SseComment(std::string_view text);

class SseParser {
 public:
  static constexpr size_t kMaxEvent = 16 << 20;
  // False stops the reading; the rest of those bytes is dropped.
  using OnEvent = std::function<bool(const SseEvent& event)>;

  // Follows the HTML standard's rules: CR, LF or CRLF, a byte order mark, unknown
  // fields skipped, events without data dropped; `id` stays until the next one.
  // kExhausted for an event beyond kMaxEvent.
  Status Feed(std::string_view bytes, const OnEvent& on_event);

  const std::string& last_event_id() const { return last_id_; }
  std::optional<int> retry_ms() const { return retry_ms_; }

 private:
  bool Line(std::string_view line, const OnEvent& on_event);

  std::string line_;
  std::string event_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool at_start_ = true;
  std::string last_id_;
  std::optional<int> retry_ms_;
};

}  // namespace athanor
