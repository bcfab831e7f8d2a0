#include "door/cloudwatch/log_events.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text/format.h"

namespace athanor {
namespace {

constexpr uint32_t kEveryAttempt = std::numeric_limits<uint32_t>::max();

template <class T>
bool TakeNumber(std::string_view& text, T& number, bool last) {
  if (text.empty() || text.front() == '-') return false;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return false;
  // One way to write a number, so that equal positions are equal tokens.
  if (at - text.data() > 1 && text.front() == '0') return false;
  text.remove_prefix(static_cast<size_t>(at - text.data()));
  if (last) return text.empty();
  if (text.empty() || text.front() != '-') return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string LogPosition::ToString() const {
  return fmt::format("{}-{}-{}-{}", entry, number, from, floor_ms);
}

std::optional<LogPosition> LogPosition::Parse(std::string_view text) {
  LogPosition position;
  if (!TakeNumber(text, position.entry, false) || !TakeNumber(text, position.number, false) ||
      !TakeNumber(text, position.from, false) || !TakeNumber(text, position.floor_ms, true)) {
    return std::nullopt;
  }
  if (position.from > position.entry || position.from < FirstOfBlock(position.entry)) {
    return std::nullopt;
  }
  return position;
}

void LogEvents::Append(Open& open, std::string_view bytes) const {
  // What a bar showed before its last carriage return was overwritten; a return with nothing after
  // it (yet) overwrites nothing.
  const size_t shown = bytes.find_last_not_of('\r') + 1;
  const bool returned = shown < bytes.size();
  bytes = bytes.substr(0, shown);
  if (!bytes.empty()) {
    const size_t painted = bytes.rfind('\r');
    if (painted != std::string_view::npos || open.returned) open = {};
    if (painted != std::string_view::npos) bytes.remove_prefix(painted + 1);
    if (open.text.empty()) open.began = at_.value_or(0);
    const size_t room = kLongestEvent - open.text.size();
    open.text += bytes.substr(0, room);
    if (bytes.size() > room) open.left_out += bytes.size() - room;
    open.returned = false;
  }
  open.returned = open.returned || returned;
}

void LogEvents::Close(Open& open, std::vector<LogEvent>& events) {
  if (open.text.empty()) open.began = at_.value_or(0);
  began_ = number_ == 0 ? open.began : std::min(began_, open.began);
  if (open.left_out > 0) {
    const std::string note =
        fmt::format(" [... {} bytes more; ath logs shows them]", open.left_out);
    size_t keep = kLongestEvent - note.size();
    // Not within a character.
    while (keep > 0 && (static_cast<unsigned char>(open.text[keep]) & 0xC0) == 0x80) --keep;
    open.text.resize(keep);
    open.text += note;
  }
  events.push_back({floor_ms_, std::move(open.text), at_.value_or(0), number_++});
  open = {};
}

void LogEvents::CloseBefore(uint32_t attempt, std::vector<LogEvent>& events) {
  while (!open_.empty() && std::get<0>(open_.begin()->first) < attempt) {
    if (!open_.begin()->second.text.empty()) Close(open_.begin()->second, events);
    open_.erase(open_.begin());
  }
}

void LogEvents::Add(const LogEntry& entry, std::vector<LogEvent>& events) {
  floor_ms_ = std::max(floor_ms_, std::min(entry.wall_ms, kLatestTime));
  if (entry.host != host_) return;
  const uint64_t at = entry.after.entry - 1;
  if (at_ && FirstOfBlock(*at_) != FirstOfBlock(at)) CloseBefore(kEveryAttempt, events);
  at_ = at;
  number_ = 0;
  CloseBefore(entry.attempt, events);
  const Key key{entry.attempt, entry.rank, entry.stream};
  std::string_view rest = entry.bytes;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    auto& open = open_[key];
    Append(open, rest.substr(0, end));
    Close(open, events);
    rest.remove_prefix(end + 1);
  }
  if (!rest.empty()) {
    Append(open_[key], rest);
  } else {
    open_.erase(key);
  }
  if (FirstOfBlock(at + 1) != FirstOfBlock(at)) CloseBefore(kEveryAttempt, events);
}

void LogEvents::Finish(std::vector<LogEvent>& events) { CloseBefore(kEveryAttempt, events); }

LogPosition LogEvents::Position() const {
  if (!at_) return {0, 0, 0, floor_ms_};
  uint64_t from = number_ > 0 ? began_ : *at_;
  for (const auto& [key, open] : open_) {
    if (!open.text.empty()) from = std::min(from, open.began);
  }
  return {*at_, number_, std::min(from, *at_), floor_ms_};
}

}  // namespace athanor
