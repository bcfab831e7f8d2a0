#include "watch/scrub/encodings.h"

#include <algorithm>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

std::string ToUrlAlphabet(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// The part of the base64 of "<skipped bytes><value><anything>" that only the value decides: the
// first digits hold bits of what comes before, the last one of what follows.
std::string Base64Core(std::string_view value, size_t skipped) {
  const std::string all = Base64(std::string(skipped, '\0').append(value));
  const size_t first = skipped == 0 ? 0 : skipped + 1;
  const size_t last = (skipped + value.size()) * 8 / 6;
  return all.substr(first, last - first);
}

// `safe`, like letters, digits and -_.~, stays as it is; blanks become `blank`.
std::string Escape(std::string_view value, std::string_view safe, std::string_view blank,
                   bool upper) {
  std::string text;
  for (const char c : value) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-_.~").find(c) != std::string_view::npos;
    if (plain || safe.find(c) != std::string_view::npos) {
      text += c;
    } else if (c == ' ') {
      text += blank;
    } else if (upper) {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      text += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

// As inside the quotes of a JSON string; bytes beyond ASCII stay.
std::string JsonForm(std::string_view value) {
  std::string text;
  for (const char c : value) {
    switch (c) {
      case '"':
        text += "\\\"";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\t':
        text += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          text += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          text += c;
        }
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> EncodedForms(std::string_view value) {
  std::vector<std::string> forms;
  const auto add = [&forms](std::string form) {
    if (std::find(forms.begin(), forms.end(), form) == forms.end())
      forms.push_back(std::move(form));
  };
  add(std::string(value));
  for (size_t skipped = 0; skipped < 3; ++skipped) {
    add(Base64Core(value, skipped));
    add(ToUrlAlphabet(Base64Core(value, skipped)));
    // At the end of the encoded text the last digit and the padding are the value's too.
    std::string whole = Base64(std::string(skipped, '\0').append(value));
    whole.erase(0, skipped == 0 ? 0 : skipped + 1);
    add(whole);
    add(ToUrlAlphabet(whole));
    const std::string bare = whole.substr(0, whole.find('='));
    add(bare);
    add(ToUrlAlphabet(bare));
  }
  // RFC 3986; Python's quote; JavaScript's encodeURIComponent and encodeURI; forms.
  struct Style {
    std::string_view safe;
    std::string_view blank;
  };
  constexpr Style kStyles[] = {{"", "%20"},      {"/", "%20"},
                               {"!'()*", "%20"}, {"!'()*;,/?:@&=+$#", "%20"},
                               {"", "+"},        {"*", "+"}};
  for (const Style& style : kStyles) {
    add(Escape(value, style.safe, style.blank, true));
    add(Escape(value, style.safe, style.blank, false));
  }
  add(JsonForm(value));
  return forms;
}

}  // namespace athanor
