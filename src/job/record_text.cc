#include "job/record_text.h"

#include <charconv>
#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/text/json.h"
#include "job/fields.h"

namespace athanor {
namespace {

class TextWriter;

template <class T>
concept Noun = std::is_class_v<T> && requires(TextWriter& writer, const T& x) {
  Fields(writer, x);
};

class TextWriter {
 public:
  explicit TextWriter(std::string& out) : out_(out) {}

  // A member; empty ones are left out, as in the codec.
  template <class T>
  void operator()(const char* key, const T& field) {
    if constexpr (Noun<T>) {
      if (field == T{}) return;
    }
    const size_t start = out_.size();
    if (!first_) out_ += ',';
    out_ += '"';
    out_ += key;
    out_ += "\":";
    const size_t value = out_.size();
    Put(field);
    const std::string_view written = std::string_view(out_).substr(value);
    if (written == "null" || written == "\"\"" || written == "[]" || written == "{}") {
      out_.resize(start);
    } else {
      first_ = false;
    }
  }

  template <class T>
  void Put(const T& field) {
    if constexpr (std::same_as<T, WallTime>) {
      field.ms == 0 ? void(out_ += "null") : PutPlain(Rfc3339(field));
    } else if constexpr (std::same_as<T, JobId> || std::same_as<T, AttemptId>) {
      field.is_zero() ? void(out_ += "null") : PutPlain(field.ToString());
    } else if constexpr (std::same_as<T, JobState>) {
      PutPlain(NameOf(field));
    } else if constexpr (std::same_as<T, Param::Kind>) {
      PutPlain(KindName(field));
    } else if constexpr (std::same_as<T, std::chrono::milliseconds>) {
      PutNumber(field.count());
    } else if constexpr (std::same_as<T, bool>) {
      out_ += field ? "true" : "false";
    } else if constexpr (std::is_floating_point_v<T>) {
      out_ += DumpJson(Json(field));
    } else if constexpr (std::is_integral_v<T>) {
      PutNumber(field);
    } else if constexpr (std::same_as<T, std::string>) {
      PutText(field);
    } else {
      static_assert(Noun<T>, "a field of a new kind: say here how it is stored");
      out_ += '{';
      TextWriter inner(out_);
      Fields(inner, field);
      out_ += '}';
    }
  }
  template <class T>
  void Put(const std::optional<T>& field) {
    field ? Put(*field) : void(out_ += "null");
  }
  template <class T>
  void Put(const std::vector<T>& items) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ',';
      Put(items[i]);
    }
    out_ += ']';
  }
  void Put(const std::map<std::string, std::string>& map) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : map) {
      if (!first) out_ += ',';
      first = false;
      PutText(key);
      out_ += ':';
      PutText(value);
    }
    out_ += '}';
  }

 private:
  static std::string_view KindName(Param::Kind kind) {
    switch (kind) {
      case Param::Kind::kString:
        return "string";
      case Param::Kind::kNumber:
        return "number";
      case Param::Kind::kBool:
        return "bool";
      case Param::Kind::kNull:
        return "null";
      case Param::Kind::kJson:
        return "json";
    }
    return "";
  }

  void PutPlain(std::string_view text) {
    out_ += '"';
    out_ += text;
    out_ += '"';
  }

  void PutText(std::string_view text) {
    for (const char c : text) {
      if (c >= ' ' && c < '\x7f' && c != '"' && c != '\\') continue;
      out_ += DumpJson(Json(text));  // escapes, and UTF-8 that may be broken
      return;
    }
    PutPlain(text);
  }

  template <std::integral T>
  void PutNumber(T number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    out_.append(digits, end);
  }

  std::string& out_;
  bool first_ = true;
};

}  // namespace

std::string RecordText(const JobRecord& record) {
  std::string out;
  out.reserve(2'048);
  TextWriter(out).Put(record);
  return out;
}

std::string SpecText(const JobSpec& spec) {
  std::string out;
  out.reserve(1'024);
  TextWriter(out).Put(spec);
  return out;
}

std::string SameRunText(const JobSpec& spec) {
  std::string out = "{\"command\":";
  TextWriter writer(out);
  writer.Put(spec.command);
  out += ",\"params\":";
  writer.Put(spec.params);
  out += ",\"bundle\":";
  writer.Put(spec.source.bundle);
  out += ",\"data\":";
  writer.Put(spec.data);
  out += '}';
  return out;
}

}  // namespace athanor
