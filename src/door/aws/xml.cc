#include "door/aws/xml.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kDeepest = 16;
constexpr size_t kMostNodes = 200'000;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':';
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 63));
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<XmlNode> Run() {
    if (StartsWith(text_, "\xef\xbb\xbf")) at_ = 3;
    ATHANOR_CHECK_OK(SkipAround());
    XmlNode root;
    ATHANOR_CHECK_OK(Element(root, 0));
    ATHANOR_CHECK_OK(SkipAround());
    if (at_ != text_.size()) return Bad("something follows the document");
    return root;
  }

 private:
  tl::unexpected<Error> Bad(std::string_view what) const {
    return Fail(ErrorCode::kInvalid, fmt::format("the XML is malformed at byte {}: {}", at_, what));
  }

  bool Take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  Status SkipPast(std::string_view token) {
    const size_t found = text_.find(token, at_);
    if (found == std::string_view::npos) return Bad("it ends too early");
    at_ = found + token.size();
    return Ok();
  }

  // Declarations and comments outside the root.
  Status SkipAround() {
    while (true) {
      SkipSpace();
      if (Take("<?")) {
        ATHANOR_CHECK_OK(SkipPast("?>"));
      } else if (Take("<!--")) {
        ATHANOR_CHECK_OK(SkipPast("-->"));
      } else {
        return Ok();
      }
    }
  }

  std::string_view Name() {
    const size_t start = at_;
    while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Status Attributes() {
    while (true) {
      SkipSpace();
      if (at_ >= text_.size()) return Bad("it ends in a tag");
      if (text_[at_] == '>' || text_[at_] == '/') return Ok();
      if (Name().empty()) return Bad("an attribute without a name");
      SkipSpace();
      if (!Take("=")) return Bad("an attribute without a value");
      SkipSpace();
      const char quote = at_ < text_.size() ? text_[at_] : '\0';
      if (quote != '"' && quote != '\'') return Bad("a value without quotes");
      ++at_;
      ATHANOR_CHECK_OK(SkipPast(std::string_view(&quote, 1)));
    }
  }

  Status Entity(std::string& out) {
    const size_t end = text_.find(';', at_);
    if (end == std::string_view::npos || end - at_ > 10) return Bad("an entity without an end");
    const std::string_view name = text_.substr(at_, end - at_);
    constexpr std::pair<std::string_view, char> kKnown[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kKnown) {
      if (known != name) continue;
      out += c;
      at_ = end + 1;
      return Ok();
    }
    const bool hex = StartsWith(name, "#x");
    const auto digits = name.substr(std::min(name.size(), hex ? size_t{2} : size_t{1}));
    uint32_t code = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    if (!StartsWith(name, "#") || digits.empty() || error != std::errc() ||
        stop != digits.data() + digits.size() || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000)) {
      return Bad("an unknown entity");
    }
    AppendUtf8(out, code);
    at_ = end + 1;
    return Ok();
  }

  Status Element(XmlNode& node, size_t depth) {
    if (depth > kDeepest || ++nodes_ > kMostNodes) return Bad("it is too deep or too large");
    if (!Take("<")) return Bad("an element was expected");
    const std::string_view full = Name();
    if (full.empty()) return Bad("an element without a name");
    const size_t colon = full.rfind(':');
    node.name = colon == std::string_view::npos ? full : full.substr(colon + 1);
    ATHANOR_CHECK_OK(Attributes());
    if (Take("/>")) return Ok();
    if (!Take(">")) return Bad("a tag without an end");
    ATHANOR_CHECK_OK(Content(node, depth));
    if (Name() != full) return Bad("the end tag does not fit");
    SkipSpace();
    if (!Take(">")) return Bad("a tag without an end");
    return Ok();
  }

  // Up to and with the "</" of the end tag.
  Status Content(XmlNode& node, size_t depth) {
    while (at_ < text_.size()) {
      if (Take("</")) return Ok();
      if (Take("<!--")) {
        ATHANOR_CHECK_OK(SkipPast("-->"));
      } else if (Take("<![CDATA[")) {
        const size_t start = at_;
        ATHANOR_CHECK_OK(SkipPast("]]>"));
        node.text += text_.substr(start, at_ - 3 - start);
      } else if (text_[at_] == '<') {
        node.children.emplace_back();
        ATHANOR_CHECK_OK(Element(node.children.back(), depth + 1));
      } else if (text_[at_] == '&') {
        ++at_;
        ATHANOR_CHECK_OK(Entity(node.text));
      } else {
        const size_t end = std::min(text_.find_first_of("<&", at_), text_.size());
        node.text += text_.substr(at_, end - at_);
        at_ = end;
      }
    }
    return Bad("it ends too early");
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t nodes_ = 0;
};

}  // namespace

std::string XmlEscape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Line ends, too: a reader would fold them.
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("&#x{:x};", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string XmlElement(std::string_view name, std::string_view text) {
  std::string out = "<";
  out += name;
  out += '>';
  out += XmlEscape(text);
  out += "</";
  out += name;
  out += '>';
  return out;
}

const XmlNode* XmlNode::Child(std::string_view wanted) const {
  for (const auto& child : children) {
    if (child.name == wanted) return &child;
  }
  return nullptr;
}

std::string_view XmlNode::TextOf(std::string_view wanted) const {
  const XmlNode* child = Child(wanted);
  return child ? std::string_view(child->text) : std::string_view();
}

Result<XmlNode> ParseXml(std::string_view text) { return Reader(text).Run(); }

}  // namespace athanor
