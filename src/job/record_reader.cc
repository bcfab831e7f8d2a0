#include "job/record_reader.h"

#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/text/rfc3339.h"
#include "base/text/unicode.h"
#include "job/fields.h"

namespace athanor {
namespace {

class TextReader;

template <class T>
concept ReadNoun = std::is_class_v<T> && requires(TextReader& reader, T& x) {
  Fields(reader, x);
};

// Reads members in the order of the field table, each present or left out. Anything else ends the
// reading: the slower reader then handles the text.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : rest_(text) {}

  template <class T>
  void operator()(std::string_view key, T& field) {
    if (failed_ || !TakeKey(key)) return;
    failed_ = !Read(field);
  }

  template <class T>
  bool Object(T& noun) {
    if (!Take('{')) return false;
    const bool outer_first = first_;
    first_ = true;
    Fields(*this, noun);
    first_ = outer_first;
    return !failed_ && Take('}');
  }
  bool over() const { return rest_.empty(); }

 private:
  bool Take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool TakeKey(std::string_view key) {
    const size_t skip = first_ ? 0 : 1;
    const size_t length = skip + key.size() + 3;  // ,"key":
    if (rest_.size() < length || (!first_ && rest_[0] != ',') || rest_[skip] != '"' ||
        rest_.compare(skip + 1, key.size(), key) != 0 || rest_[length - 2] != '"' ||
        rest_[length - 1] != ':') {
      return false;
    }
    rest_.remove_prefix(length);
    first_ = false;
    return true;
  }

  // Up to the closing quote, without escapes: for ids, times and names of states.
  bool Plain(std::string_view& out) {
    if (!Take('"')) return false;
    size_t size = 0;
    while (size < rest_.size() && IsPlain(rest_[size])) ++size;
    if (size == rest_.size() || rest_[size] != '"') return false;
    out = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    return true;
  }
  static bool IsPlain(char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; }

  bool Text(std::string& out) {
    std::string_view plain;
    const auto before = rest_;
    if (Plain(plain)) {
      out = plain;
      return true;
    }
    rest_ = before;
    out.clear();
    if (!Take('"')) return false;
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\\') {
        if (!Escape(out)) return false;
        continue;
      }
      const size_t length = static_cast<unsigned char>(rest_.front()) < ' ' ? 0 : Utf8Length(rest_);
      if (length == 0) return false;
      out += rest_.substr(0, length);
      rest_.remove_prefix(length);
    }
    return Take('"');
  }

  // Those with a letter; \u is left to the other reader.
  bool Escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const size_t at = rest_.size() < 2 ? std::string_view::npos : kLetters.find(rest_[1]);
    if (at == std::string_view::npos) return false;
    out += kMeant[at];
    rest_.remove_prefix(2);
    return true;
  }

  template <std::integral T>
  bool Number(T& out) {
    const char* const begin = rest_.data();
    const char* const end = begin + rest_.size();
    const auto read = std::from_chars(begin, end, out);
    if (read.ec != std::errc() || read.ptr == end) return false;
    const std::string_view digits(begin, static_cast<size_t>(read.ptr - begin));
    if ((digits.front() == '0' && digits.size() > 1) || digits.starts_with("-0")) return false;
    rest_.remove_prefix(digits.size());
    // Not the first part of something longer, such as 1.5.
    return rest_.front() == ',' || rest_.front() == '}' || rest_.front() == ']';
  }

  template <class T>
  bool Read(T& field) {
    std::string_view plain;
    if constexpr (std::same_as<T, WallTime>) {
      const auto time = Plain(plain) ? ParseRfc3339(plain) : std::nullopt;
      if (time) field = *time;
      return time.has_value();
    } else if constexpr (std::same_as<T, JobId> || std::same_as<T, AttemptId>) {
      const auto id = Plain(plain) ? T::Parse(plain) : std::nullopt;
      if (id) field = *id;
      return id.has_value();
    } else if constexpr (std::same_as<T, JobState>) {
      const auto state = Plain(plain) ? StateNamed(plain) : std::nullopt;
      if (state) field = *state;
      return state.has_value();
    } else if constexpr (std::same_as<T, Param::Kind>) {
      return Plain(plain) && ReadKind(plain, field);
    } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
      int64_t count = 0;
      if (!Number(count)) return false;
      field = std::chrono::milliseconds(count);
      return true;
    } else if constexpr (std::same_as<T, bool>) {
      field = rest_.starts_with("true");
      if (!field && !rest_.starts_with("false")) return false;
      rest_.remove_prefix(field ? 4 : 5);
      return true;
    } else if constexpr (std::is_floating_point_v<T>) {
      return false;  // rare; the other reader decides how it is rounded
    } else if constexpr (std::is_integral_v<T>) {
      return Number(field);
    } else if constexpr (std::same_as<T, std::string>) {
      return Text(field);
    } else {
      static_assert(ReadNoun<T>, "a field of a new kind: say here how it is read");
      return Object(field);
    }
  }
  template <class T>
  bool Read(std::optional<T>& field) {
    return Read(field.emplace());
  }
  template <class T>
  bool Read(std::vector<T>& items) {
    if (!Take('[')) return false;
    items.clear();
    if (Take(']')) return true;
    do {
      if (!Read(items.emplace_back())) return false;
    } while (Take(','));
    return Take(']');
  }
  bool Read(std::map<std::string, std::string>& map) {
    if (!Take('{')) return false;
    map.clear();
    if (Take('}')) return true;
    do {
      std::string key;
      if (!Text(key) || map.contains(key) || !Take(':') || !Text(map[key])) return false;
    } while (Take(','));
    return Take('}');
  }

  static bool ReadKind(std::string_view name, Param::Kind& kind) {
    constexpr std::string_view kKinds[] = {"string", "number", "bool", "null", "json"};
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      if (name != kKinds[i]) continue;
      kind = static_cast<Param::Kind>(i);
      return true;
    }
    return false;
  }

  std::string_view rest_;
  bool first_ = true;
  bool failed_ = false;
};

}  // namespace

bool ReadRecordText(std::string_view text, JobRecord& record) {
  TextReader reader(text);
  if (!reader.Object(record) || !reader.over()) return false;
  AddMissingHosts(record);
  return true;
}

}  // namespace athanor
