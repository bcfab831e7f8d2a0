#include "base/text/rfc3339.h"

#include <charconv>
#include <ctime>

namespace athanor {
namespace {

// Takes a number of exactly `digits` digits and the character after it off the front of `text`.
bool Take(std::string_view& text, size_t digits, char behind, int& number) {
  if (text.size() < digits) return false;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return false;
  }
  std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  if (behind == 0) return true;
  if (text.empty() || text.front() != behind) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<WallTime> ParseRfc3339(std::string_view text) {
  std::tm tm{};
  if (!Take(text, 4, '-', tm.tm_year) || !Take(text, 2, '-', tm.tm_mon) ||
      !Take(text, 2, 'T', tm.tm_mday) || !Take(text, 2, ':', tm.tm_hour) ||
      !Take(text, 2, ':', tm.tm_min) || !Take(text, 2, 0, tm.tm_sec)) {
    return std::nullopt;
  }
  int64_t millis = 0;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
      if (digits < 3) millis = millis * 10 + (text[digits] - '0');
    }
    if (digits == 0) return std::nullopt;
    for (size_t i = digits; i < 3; ++i) millis *= 10;
    text.remove_prefix(digits);
  }
  if (text != "Z") return std::nullopt;
  tm.tm_year -= 1900;
  tm.tm_mon -= 1;
  std::tm made = tm;
  const auto seconds = static_cast<int64_t>(::timegm(&made));
  // timegm accepts the 31st of February as the 3rd of March.
  if (made.tm_mon != tm.tm_mon || made.tm_mday != tm.tm_mday || made.tm_hour != tm.tm_hour ||
      made.tm_min != tm.tm_min || made.tm_sec != tm.tm_sec) {
    return std::nullopt;
  }
  return WallTime{seconds * 1000 + millis};
}

}  // namespace athanor
