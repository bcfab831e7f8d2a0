#include "base/text/json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kMaxDepth = 64;
// Below this many keys a linear search is faster than a set.
constexpr size_t kLinearKeys = 16;

// Counts what the parser has read, so that our own errors have a position too.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* count) : at_(at), count_(count) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

// Builds the value from the parser's events. The parser keeps its own stack, so
// nesting costs no C++ stack before the depth check stops it.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const size_t* position) : position_(position) {}

  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return Refuse("binary values are not JSON"); }
  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    Level& level = levels_.back();
    auto& members = level.value->get_ref<Json::object_t&>();
    if (IsDuplicate(level, members, name)) {
      return Refuse(fmt::format("key \"{}\" appears twice in one object", Printable(name)));
    }
    // The map's own emplace searches all members each time, which makes an
    // object of n keys cost n^2; the duplicate check above has done that work.
    static_cast<std::vector<std::pair<const std::string, Json>>&>(members).emplace_back(
        std::move(name), nullptr);
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    error_position_ = position;
    std::string_view text = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what matters"
    if (const size_t name_end = text.find("] "); name_end != std::string_view::npos) {
      text.remove_prefix(name_end + 2);
    }
    if (StartsWith(text, "parse error at ")) {
      if (const size_t colon = text.find(": "); colon != std::string_view::npos) {
        text.remove_prefix(colon + 2);
      }
    }
    error_ = Printable(text.substr(0, 300));
    return false;
  }

  Json TakeValue() { return std::move(root_); }
  const std::string& error() const { return error_; }
  size_t error_position() const { return error_position_; }

 private:
  struct Level {
    Json* value;
    std::unordered_set<std::string> keys;
  };

  static bool IsDuplicate(Level& level, const Json::object_t& members, const std::string& name) {
    if (members.size() < kLinearKeys) {
      for (const auto& member : members) {
        if (member.first == name) return true;
      }
      return false;
    }
    if (level.keys.empty()) {
      for (const auto& member : members) level.keys.insert(member.first);
    }
    return !level.keys.insert(name).second;
  }

  Json* Place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *levels_.back().value;
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    Json& slot = parent.get_ref<Json::object_t&>().back().second;
    slot = std::move(value);
    return &slot;
  }

  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(Json container) {
    if (levels_.size() >= kMaxDepth) {
      return Refuse(fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    levels_.push_back(Level{Place(std::move(container)), {}});
    return true;
  }

  bool Close() {
    levels_.pop_back();
    return true;
  }

  bool Refuse(std::string why) {
    error_ = std::move(why);
    error_position_ = *position_;
    return false;
  }

  const size_t* position_;
  Json root_;
  std::vector<Level> levels_;
  std::string error_;
  size_t error_position_ = 0;
};

bool HasNonFinite(const Json& value) {
  if (value.is_number_float()) return !std::isfinite(value.get<double>());
  if (!value.is_structured()) return false;
  for (const auto& item : value) {
    if (HasNonFinite(item)) return true;
  }
  return false;
}

void NameNonFinite(Json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isnan(number)) {
      value = "NaN";
    } else if (std::isinf(number)) {
      value = number > 0 ? "Infinity" : "-Infinity";
    }
    return;
  }
  if (!value.is_structured()) return;
  for (auto& item : value) NameNonFinite(item);
}

std::string Dump(const Json& value, int indent) {
  constexpr auto kReplace = nlohmann::detail::error_handler_t::replace;
  if (!HasNonFinite(value)) return value.dump(indent, ' ', false, kReplace);
  Json named = value;
  NameNonFinite(named);
  return named.dump(indent, ' ', false, kReplace);
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  size_t position = 0;
  Builder builder(&position);
  const CountingIterator begin(text.data(), &position);
  const CountingIterator end(text.data() + text.size(), &position);
  if (Json::sax_parse(begin, end, &builder)) return builder.TakeValue();

  size_t line = 1;
  size_t column = 0;
  const size_t stop = std::min(builder.error_position(), text.size());
  for (size_t i = 0; i < stop; ++i) {
    ++column;
    // The line end itself still belongs to its line when the error is right there.
    if (text[i] == '\n' && i + 1 < stop) {
      ++line;
      column = 0;
    }
  }
  column = std::max<size_t>(column, 1);
  return Fail(
      Error{ErrorCode::kInvalid, fmt::format("not valid JSON at line {}, column {}", line, column)}
          .Why(builder.error())
          .Where(fmt::format("{}:{}", line, column)));
}

std::string DumpJson(const Json& value) { return Dump(value, -1); }

std::string DumpJsonPretty(const Json& value) { return Dump(value, 2); }

}  // namespace athanor
