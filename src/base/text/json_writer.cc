#include "base/text/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// The length of the UTF-8 sequence at the front of `text`; 0: there is none.
size_t SequenceAt(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return size <= text.size() && IsUtf8(text.substr(0, size)) ? size : 0;
}

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

// Whether all eight characters at `text` are plain, checked together.
bool ArePlain(const char* text) {
  constexpr uint64_t kOnes = 0x0101'0101'0101'0101ull;
  constexpr uint64_t kHigh = 0x80 * kOnes;
  uint64_t eight = 0;
  std::memcpy(&eight, text, sizeof(eight));
  const auto has = [&](uint64_t byte) {
    const uint64_t x = eight ^ (byte * kOnes);
    return (x - kOnes) & ~x;
  };
  const uint64_t below_blank = (eight - 0x20 * kOnes) & ~eight;
  return ((eight | below_blank | has('"') | has('\\')) & kHigh) == 0;
}

}  // namespace

void AppendJsonText(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end + 8 <= text.size() && ArePlain(text.data() + end)) end += 8;
    while (end < text.size() && IsPlain(text[end])) ++end;
    out.append(text, i, end - i);
    i = end;
    if (i == text.size()) break;
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const size_t size = SequenceAt(text.substr(i));
      size == 0 ? out.append("\xEF\xBF\xBD") : out.append(text, i, size);
      i += size == 0 ? 1 : size;
      continue;
    }
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
    }
    ++i;
  }
  out += '"';
}

void JsonWriter::Next() {
  if (due_) out_ += ',';
  due_ = true;
}

void JsonWriter::Open(char bracket) {
  Next();
  out_ += bracket;
  due_ = false;
}

void JsonWriter::Close(char bracket) {
  out_ += bracket;
  due_ = true;
}

void JsonWriter::Key(std::string_view name) {
  Next();
  AppendJsonText(out_, name);
  out_ += ':';
  due_ = false;
}

void JsonWriter::Text(std::string_view text) {
  Next();
  AppendJsonText(out_, text);
}

void JsonWriter::Int(int64_t value) {
  Next();
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out_.append(digits, end);
}

void JsonWriter::Double(double value) {
  if (std::isnan(value)) return Text("NaN");
  if (std::isinf(value)) return Text(value > 0 ? "Infinity" : "-Infinity");
  Next();
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  out_ += text;
  // A reader that distinguishes integers from floats must see a float.
  if (text.find_first_of(".e") == std::string_view::npos) out_ += ".0";
}

void JsonWriter::Bool(bool value) {
  Next();
  out_ += value ? "true" : "false";
}

void JsonWriter::Raw(std::string_view json) {
  Next();
  out_ += json;
}

}  // namespace athanor
