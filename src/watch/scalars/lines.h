// LineSplitter finds the lines of a byte stream that arrives in pieces cut anywhere. '\n' and '\r'
// both end a line (progress bars rewrite theirs with '\r'), so "\r\n" gives an empty one, which is
// left out. A line is cut to kMaxLine bytes; the rest is skipped. The lines and their offsets do
// not depend on how the stream was cut.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace athanor {

class LineSplitter {
 public:
  static constexpr size_t kMaxLine = 64u << 10;

  // `offset` of the first byte that will be fed; it must begin a line.
  explicit LineSplitter(uint64_t offset = 0) : position_(offset), line_start_(offset) {}

  // Calls `on_line(std::string_view line, uint64_t end)` for each line that ended; `end` is the
  // offset just after its terminator. The view is valid during that call.
  template <class OnLine>
  void Feed(std::string_view bytes, OnLine&& on_line) {
    while (!bytes.empty()) {
      const size_t end = FirstEnd(bytes);
      if (end == std::string_view::npos) break;
      position_ += end + 1;
      End(bytes.substr(0, end), on_line);
      bytes.remove_prefix(end + 1);
    }
    position_ += bytes.size();
    Keep(bytes);
  }

  // The stream has ended: what is left is a line, too.
  template <class OnLine>
  void Finish(OnLine&& on_line) {
    End({}, on_line);
  }

  // Where the line that has not ended yet begins: to continue later, start there.
  uint64_t line_start() const { return line_start_; }

 private:
  static size_t FirstEnd(std::string_view bytes) {
    const size_t newline = bytes.find('\n');
    const size_t bar = bytes.substr(0, newline).find('\r');
    return bar != std::string_view::npos ? bar : newline;
  }

  void Keep(std::string_view bytes) { open_ += bytes.substr(0, kMaxLine - open_.size()); }

  template <class OnLine>
  void End(std::string_view rest, OnLine& on_line) {
    std::string_view line = rest.substr(0, kMaxLine);
    if (!open_.empty()) {
      Keep(rest);
      line = open_;
    }
    line_start_ = position_;
    if (!line.empty()) on_line(line, position_);
    open_.clear();
  }

  std::string open_;
  uint64_t position_;
  uint64_t line_start_;
};

}  // namespace athanor
