#include "net/http/sse.h"

#include <charconv>

namespace athanor {
namespace {

// Calls `each` for every line of `text`, split at LF, CR or CRLF; a text that
// ends with a line end has an empty last line.
template <class Each>
void ForEachLine(std::string_view text, const Each& each) {
  for (;;) {
    const size_t end = text.find_first_of("\r\n");
    each(text.substr(0, end));
    if (end == std::string_view::npos) return;
    const bool pair = text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n';
    text.remove_prefix(end + (pair ? 2 : 1));
  }
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (char c : value) {
    if (c != '\r' && c != '\n' && c != '\0') out += c;
  }
  out += '\n';
}

}  // namespace

std::string FormatSse(const SseEvent& event) {
  std::string out;
  out.reserve(event.data.size() + event.id.size() + event.event.size() + 32);
  if (!event.id.empty()) AppendField(out, "id", event.id);
  if (!event.event.empty()) AppendField(out, "event", event.event);
  ForEachLine(event.data, [&](std::string_view line) {
    out += "data: ";
    out += line;
    out += '\n';
  });
  out += '\n';
  return out;
}

std::string SseComment(std::string_view text) {
  std::string out;
  ForEachLine(text, [&](std::string_view line) {
    out += ": ";
    out += line;
    out += '\n';
  });
  out += '\n';
  return out;
}

Status SseParser::Feed(std::string_view bytes, const OnEvent& on_event) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + data_.size() + piece.size() > kMaxEvent) {
      return Fail(ErrorCode::kExhausted, "a server-sent event is larger than 16 MiB");
    }
    line_ += piece;
    if (end == std::string_view::npos) return Ok();
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);

    std::string_view line = line_;
    if (at_start_ && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
    at_start_ = false;
    const bool go_on = Line(line, on_event);
    line_.clear();
    if (!go_on) return Ok();
  }
  return Ok();
}

bool SseParser::Line(std::string_view line, const OnEvent& on_event) {
  if (line.empty()) {
    bool go_on = true;
    if (has_data_) {
      data_.pop_back();  // the line end that each data field adds
      go_on = on_event(SseEvent{last_id_, event_, data_});
    }
    event_.clear();
    data_.clear();
    has_data_ = false;
    return go_on;
  }
  const size_t colon = line.find(':');
  if (colon == 0) return true;
  const std::string_view name = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (name == "data") {
    data_ += value;
    data_ += '\n';
    has_data_ = true;
  } else if (name == "event") {
    event_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) last_id_ = value;
  } else if (name == "retry") {
    int ms = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), ms);
    if (error == std::errc() && stop == value.data() + value.size() && ms >= 0) retry_ms_ = ms;
  }
  return true;
}

}  // namespace athanor
