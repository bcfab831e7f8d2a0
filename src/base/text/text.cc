#include "base/text/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/text/format.h"
#include "base/text/unicode.h"

namespace athanor {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsAlnum(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool IsLetter(char c) { return IsAlnum(c) && !IsDigit(c); }

// Removes "12" or "1.5" from the front. No sign, no exponent: neither a size nor a duration has
// one. Empty if there is no digit or it cannot be exact.
std::optional<double> TakeNumber(std::string_view& text) {
  size_t end = 0;
  size_t digits = 0;
  double value = 0;
  for (; end < text.size() && IsDigit(text[end]); ++end, ++digits) {
    value = value * 10 + (text[end] - '0');
  }
  if (end < text.size() && text[end] == '.') {
    ++end;
    double scale = 0.1;
    for (; end < text.size() && IsDigit(text[end]); ++end, ++digits, scale /= 10) {
      value += (text[end] - '0') * scale;
    }
  }
  if (digits == 0 || digits > 30) return std::nullopt;
  text.remove_prefix(end);
  return value;
}

std::string_view TakeLetters(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && IsLetter(text[end])) ++end;
  const std::string_view letters = text.substr(0, end);
  text.remove_prefix(end);
  return letters;
}

std::optional<double> MillisOfUnit(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit.empty() || unit == "s" || unit == "sec") return 1'000;
  if (unit == "m" || unit == "min") return 60'000;
  if (unit == "h") return 3'600'000;
  if (unit == "d") return 86'400'000;
  if (unit == "w") return 604'800'000;
  return std::nullopt;
}

std::optional<double> BytesOfUnit(std::string_view given) {
  const std::string unit = ToLower(given);
  if (unit.empty() || unit == "b") return 1;
  const size_t power = std::string_view("kmgtp").find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(unit).substr(1);
  const double exponent = static_cast<double>(power + 1);
  if (rest.empty() || rest == "i" || rest == "ib") return std::pow(1024.0, exponent);
  if (rest == "b") return std::pow(1000.0, exponent);
  return std::nullopt;
}

tl::unexpected<Error> Refuse(const char* id, std::string what, std::string_view text,
                             std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
                  .Why("got '" + Printable(text.substr(0, 80)) + "'")
                  .Id(id));
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Edit distance in which swapping two neighbours counts as one edit.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0;;) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string ToUpper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string ReplaceAll(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  std::string replaced;
  size_t start = 0;
  for (size_t at; (at = text.find(from, start)) != std::string::npos; start = at + from.size()) {
    replaced.append(text, start, at - start);
    replaced += to;
  }
  if (start == 0) return text;
  replaced.append(text, start, std::string::npos);
  return replaced;
}

Result<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  const auto refuse = [&] {
    return Refuse("ATH-C0014", "not a duration", text,
                  "write it like 90s, 10m, 1h30m, 250ms or 2d");
  };
  std::string_view rest = Trim(text);
  if (rest.empty()) return refuse();
  double total = 0;
  double smallest_unit = HUGE_VAL;
  while (!rest.empty()) {
    const auto number = TakeNumber(rest);
    if (!number) return refuse();
    const std::string_view unit = TakeLetters(rest);
    const auto scale = MillisOfUnit(unit);
    // Units must be in descending order, and a bare number must be alone: "1h30" is not guessed.
    if (!scale || *scale >= smallest_unit) return refuse();
    if (unit.empty() && smallest_unit != HUGE_VAL) return refuse();
    smallest_unit = *scale;
    total += *number * *scale;
  }
  // 10^15 ms are 31,700 years; below that a double still counts milliseconds exactly.
  if (total > 1e15) return refuse();
  return std::chrono::milliseconds(std::llround(total));
}

Result<uint64_t> ParseBytes(std::string_view text) {
  const auto refuse = [&] {
    return Refuse("ATH-C0015", "not a size", text, "write it like 512, 64KB, 1.5GiB or 2G");
  };
  std::string_view rest = Trim(text);
  // Plain numbers stay exact beyond 2^53.
  if (!rest.empty() && std::all_of(rest.begin(), rest.end(), IsDigit)) {
    uint64_t bytes = 0;
    for (const char c : rest) {
      if (__builtin_mul_overflow(bytes, uint64_t{10}, &bytes) ||
          __builtin_add_overflow(bytes, static_cast<uint64_t>(c - '0'), &bytes)) {
        return refuse();
      }
    }
    return bytes;
  }
  const auto number = TakeNumber(rest);
  if (!number) return refuse();
  rest = Trim(rest);
  const auto scale = BytesOfUnit(TakeLetters(rest));
  if (!scale || !rest.empty()) return refuse();
  const double bytes = std::round(*number * *scale);
  if (bytes >= 18446744073709551616.0) return refuse();
  return static_cast<uint64_t>(bytes);
}

std::string HumanBytes(uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // 1023.9 would be shown as "1024".
  while (value >= (unit == 0 ? 1024 : 1023.5) && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const double shown = value >= 99.95 ? std::round(value) : std::round(value * 10) / 10;
  return fmt::format("{} {}", shown, kUnits[unit]);
}

std::string HumanDuration(std::chrono::milliseconds duration) {
  const int64_t ms = duration.count();
  if (ms < 0) {
    // Unsigned negation also works for the smallest value.
    const uint64_t size = 0 - static_cast<uint64_t>(ms);
    return "-" + HumanDuration(std::chrono::milliseconds(
                     static_cast<int64_t>(std::min<uint64_t>(size, INT64_MAX))));
  }
  const auto two = [](int64_t large, const char* unit, std::string small) {
    return small.empty() ? fmt::format("{} {}", large, unit)
                         : fmt::format("{} {} {}", large, unit, small);
  };
  const auto rest = [](int64_t amount, const char* unit, int width) {
    return amount == 0 ? std::string() : fmt::format("{:0{}} {}", amount, width, unit);
  };
  if (ms < 1000) return fmt::format("{} ms", ms);
  const int64_t seconds = ms / 1000;
  // Cut off, not rounded: it never shows a minute before the minute is over.
  const int64_t tenths = ms / 100;
  if (seconds < 10) return fmt::format("{} s", static_cast<double>(tenths) / 10);
  if (seconds < 60) return fmt::format("{} s", seconds);
  const int64_t minutes = seconds / 60;
  if (minutes < 60) return two(minutes, "m", rest(seconds % 60, "s", 2));
  const int64_t hours = minutes / 60;
  if (hours < 48) return two(hours, "h", rest(minutes % 60, "m", 2));
  return two(hours / 24, "d", rest(hours % 24, "h", 1));
}

std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  const std::string lower = ToLower(word);
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const size_t distance = Distance(lower, ToLower(candidate));
    // A word of which nothing is left is no suggestion.
    if (distance < best_distance && distance < candidate.size()) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best != nullptr) return *best;
  constexpr size_t kShortestPart = 4;
  if (word.size() < kShortestPart) return std::nullopt;
  const auto has_it = [&](const std::string& candidate) {
    for (const auto& part : Split(ToLower(candidate), '_')) {
      if (part == lower) return true;
    }
    return false;
  };
  const auto first = std::find_if(candidates.begin(), candidates.end(), has_it);
  if (first == candidates.end() || std::any_of(first + 1, candidates.end(), has_it))
    return std::nullopt;
  return *first;
}

std::string ShellQuote(std::string_view word) {
  constexpr std::string_view kSafe = "_-./=:,@%+";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return IsAlnum(c) || kSafe.find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  return "'" + ReplaceAll(std::string(word), "'", "'\\''") + "'";
}

std::string Printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const size_t taken = std::max<size_t>(length, 1);
    if (length > 0 && !DrivesTerminal(Utf8Decode(text, length))) {
      shown += text.substr(0, taken);
    } else {
      for (const char c : text.substr(0, taken)) {
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(taken);
  }
  return shown;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kBase64[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t pending = 0;
  int bits = 0;
  for (const char c : text) {
    const size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    pending = (pending << 6 | static_cast<uint32_t>(value)) & 0xffffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(pending >> bits & 0xff);
    }
  }
  // One text per value: left-over bits must be zero.
  if ((pending & ((1u << bits) - 1)) != 0) return std::nullopt;
  return bytes;
}

std::string UrlEncode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsAlnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::optional<std::string> UrlDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return decoded;
}

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    // A terminal shows one replacement character for a byte that it cannot decode.
    width += length == 0 ? 1 : static_cast<size_t>(CodePointWidth(Utf8Decode(text, length)));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return width;
}

}  // namespace athanor
