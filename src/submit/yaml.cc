#include "submit/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_map>

#include "base/text/format.h"
#include "base/text/text.h"
#include "base/text/unicode.h"

namespace athanor {
namespace {

// Thrown by the event handler through yaml-cpp, caught in ParseYaml.
struct Refusal {
  Error error;
};

Error MakeError(const std::string& file, YamlMark mark, std::string id, std::string what,
                std::string why, std::string hint) {
  return Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
      .Why(std::move(why))
      .Id(std::move(id))
      .Where(WhereOf(file, mark));
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::string_view LineOf(std::string_view text, uint32_t line) {
  size_t start = 0;
  for (uint32_t at = 1; at < line; ++at) {
    const size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return {};
    start = end + 1;
  }
  return text.substr(start, text.find('\n', start) - start);
}

// yaml-cpp counts bytes from 0; people count characters from 1. Marks come nearly in order, so the
// last position is remembered: a long line stays linear.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  YamlMark At(const YAML::Mark& mark) {
    if (mark.is_null()) return {};
    const auto offset = std::min(static_cast<size_t>(std::max(mark.pos, 0)), text_.size());
    if (offset < offset_) {
      offset_ = 0;
      place_ = {1, 1};
    }
    for (; offset_ < offset; ++offset_) {
      const auto byte = static_cast<unsigned char>(text_[offset_]);
      if (byte == '\n') {
        place_ = {place_.line + 1, 1};
      } else if ((byte & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
    return place_;
  }

 private:
  std::string_view text_;
  size_t offset_ = 0;
  YamlMark place_{1, 1};
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, std::string_view text) : file_(file), places_(text) {}

  YamlNode Take() { return std::move(root_); }
  YamlMark PlaceOf(const YAML::Mark& mark) { return places_.At(mark); }
  bool started() const { return started_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) {
      throw Refusal{MakeError(file_, places_.At(mark), "ATH-S0102",
                              "the file holds more than one document",
                              "a second document starts here", "keep one job per file")};
    }
    started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlMark place = places_.At(mark);
    YamlNode node;
    node.mark = place;
    Count(node, place);
    Finish(std::move(node), anchor, place);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlMark place = places_.At(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw Refusal{MakeError(file_, place, "ATH-S0103", "an alias refers to itself",
                              "the anchor it names is still open here",
                              "write the values out instead")};
    }
    CountTree(found->second, place, frames_.size() + 1);
    Finish(YamlNode(found->second), YAML::NullAnchor, place);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const YamlMark place = places_.At(mark);
    YamlNode node = YamlNode::Scalar(value, tag == "!" || tag == "tag:yaml.org,2002:str");
    node.mark = place;
    if (!node.quoted) CheckTag(tag, place);
    if (value.find('\0') != std::string::npos || !IsUtf8(value)) {
      throw Refusal{MakeError(file_, place, "ATH-S0101", "a value holds bytes that are no text",
                              "got '" + Printable(value.substr(0, 60)) + "'",
                              "remove the \\0 or \\x escape")};
    }
    Count(node, place);
    Finish(std::move(node), anchor, place);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    YamlMark key_mark;
    std::unordered_map<std::string, YamlMark> keys;
  };

  void CheckTag(const std::string& tag, YamlMark mark) {
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    if (tag.empty() || tag == "?" || tag == "!") return;
    if (StartsWith(tag, kStandard) &&
        IsOneOf(std::string_view(tag).substr(kStandard.size()),
                {"str", "int", "float", "bool", "null", "map", "seq"})) {
      return;
    }
    throw Refusal{MakeError(file_, mark, "ATH-S0102", "tags are not used in job files",
                            "got '" + Printable(tag.substr(0, 60)) + "'",
                            "remove the tag; a value that starts with '!' needs quotes")};
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    Frame frame;
    frame.node.kind = kind;
    frame.node.mark = places_.At(mark);
    frame.anchor = anchor;
    CheckTag(tag, frame.node.mark);
    if (!frames_.empty()) CheckKeyPosition(frame.node.mark);
    CheckDepth(frames_.size() + 1, frame.node.mark);
    Count(frame.node, frame.node.mark);
    frames_.push_back(std::move(frame));
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    const YamlMark mark = frame.node.mark;
    Finish(std::move(frame.node), frame.anchor, mark);
  }

  void CheckKeyPosition(YamlMark mark) {
    const Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::kMap && !frame.has_key) {
      throw Refusal{MakeError(file_, mark, "ATH-S0102", "a key must be a plain word",
                              "there is a list or map where a key is expected",
                              "quote the value if it starts with '[' or '{'")};
    }
  }

  // `place` is where the node is used, which is not where an alias was defined.
  void Finish(YamlNode node, YAML::anchor_t anchor, YamlMark place) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::kSequence) {
      frame.node.items.push_back(std::move(node));
    } else if (frame.has_key) {
      frame.node.entries.push_back({std::move(frame.key), frame.key_mark, std::move(node)});
      frame.has_key = false;
    } else {
      TakeKey(frame, node, place);
    }
  }

  void TakeKey(Frame& frame, const YamlNode& node, YamlMark place) {
    if (node.kind == YamlNode::Kind::kSequence || node.kind == YamlNode::Kind::kMap) {
      CheckKeyPosition(place);
    }
    if (node.text.empty()) {
      throw Refusal{MakeError(file_, place, "ATH-S0102", "a key is missing",
                              "there is nothing before the ':'",
                              "write the key, as in  name: value")};
    }
    if (node.text == "<<" && !node.quoted) {
      throw Refusal{MakeError(file_, place, "ATH-S0102", "merge keys are not supported", "got '<<'",
                              "write the merged keys out")};
    }
    const auto [at, fresh] = frame.keys.emplace(node.text, place);
    if (!fresh) {
      throw Refusal{
          MakeError(file_, place, "ATH-S0104",
                    fmt::format("the key '{}' is given twice", Printable(node.text.substr(0, 60))),
                    fmt::format("first on line {}, again on line {}", at->second.line, place.line),
                    "keep one of the two")};
    }
    frame.key = node.text;
    frame.key_mark = place;
    frame.has_key = true;
  }

  void CheckDepth(size_t depth, YamlMark mark) {
    if (depth <= kYamlDepthLimit) return;
    throw Refusal{MakeError(file_, mark, "ATH-S0103", "the file is nested too deeply",
                            fmt::format("more than {} levels", kYamlDepthLimit),
                            "flatten it, or give large parameters as a file")};
  }

  void Count(const YamlNode& node, YamlMark mark) {
    bytes_ += node.text.size();
    if (++nodes_ <= kYamlNodeLimit && bytes_ <= kYamlTextLimit) return;
    throw Refusal{MakeError(file_, mark, "ATH-S0103", "the file holds too many values",
                            fmt::format("more than {} values or {} of text after expanding aliases",
                                        kYamlNodeLimit, HumanBytes(kYamlTextLimit)),
                            "give large parameters as a file in the source")};
  }

  void CountTree(const YamlNode& node, YamlMark mark, size_t depth) {
    Count(node, mark);
    if (node.kind == YamlNode::Kind::kSequence || node.kind == YamlNode::Kind::kMap) {
      CheckDepth(depth, mark);
    }
    for (const auto& item : node.items) CountTree(item, mark, depth + 1);
    for (const auto& entry : node.entries) {
      bytes_ += entry.key.size();
      CountTree(entry.value, mark, depth + 1);
    }
  }

  const std::string& file_;
  Places places_;
  bool started_ = false;
  size_t nodes_ = 0;
  size_t bytes_ = 0;
  YamlNode root_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
};

// The place of byte `offset`.
YamlMark PlaceOfByte(std::string_view text, size_t offset) {
  YAML::Mark mark;
  mark.pos = static_cast<int>(offset);
  return Places(text).At(mark);
}

// What is checked before the library sees the text. yaml-cpp guesses UTF-16 from NUL bytes, takes
// 0x04 for the end of file, and its scanner is slow on long runs of open brackets, so none of these
// reach it.
Status CheckBytes(std::string_view text, const std::string& file) {
  if (text.size() > kYamlTextLimit) {
    return Fail(MakeError(
        file, {}, "ATH-S0101", "the file is too large for a job file",
        fmt::format("{}; the limit is {}", HumanBytes(text.size()), HumanBytes(kYamlTextLimit)),
        "is it the right file? ath init writes a new one"));
  }
  size_t open = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f;
    if (length == 0 || control) {
      return Fail(MakeError(file, PlaceOfByte(text, at), "ATH-S0101", "the file is not text",
                            fmt::format("byte 0x{:02x} at offset {} is {}", byte, at,
                                        length == 0 ? "not UTF-8" : "a control character"),
                            "is it the right file? save it as UTF-8"));
    }
    if (byte == '[' || byte == '{') ++open;
    if ((byte == ']' || byte == '}') && open > 0) --open;
    // Generous, because brackets in quotes and comments count, too; the handler applies the exact
    // limit.
    if (open > 16 * kYamlDepthLimit) {
      return Fail(MakeError(file, PlaceOfByte(text, at), "ATH-S0103",
                            "the file is nested too deeply",
                            fmt::format("{} brackets are open here", open),
                            "close them, or give large parameters as a file"));
    }
    at += length;
  }
  return Ok();
}

std::string Normalised(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (StartsWith(text, kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::string lines = ReplaceAll(std::string(text), "\r\n", "\n");
  std::replace(lines.begin(), lines.end(), '\r', '\n');
  return lines;
}

// A tab where YAML requires spaces gives many different messages, or none.
bool HasTabIndent(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != std::string_view::npos && line.substr(0, first).find('\t') != line.npos;
}

Error SyntaxError(const std::string& file, std::string_view text, YamlMark mark,
                  const std::string& message) {
  for (const uint32_t line : {mark.line, mark.line - 1}) {
    if (line == 0 || line > mark.line || !HasTabIndent(LineOf(text, line))) continue;
    return MakeError(file, {line, 1}, "ATH-S0102", "a tab is used for indentation",
                     "YAML takes only spaces there", "replace the tab with spaces");
  }
  std::string hint = "check the indentation, and quote values that hold ': ', '#' or brackets";
  if (message == YAML::ErrorMsg::UNKNOWN_ANCHOR) {
    hint = "a value that starts with '*' needs quotes";
  } else if (message == YAML::ErrorMsg::END_OF_SEQ_FLOW ||
             message == YAML::ErrorMsg::END_OF_MAP_FLOW) {
    hint = "close the bracket; a value that starts with '[' or '{' needs quotes";
  } else if (message == YAML::ErrorMsg::UNKNOWN_TOKEN) {
    hint = "a value that starts with '%', '@' or '`' needs quotes";
  }
  return MakeError(file, mark, "ATH-S0102", "the file is not valid YAML",
                   fmt::format("{}, near '{}'", Printable(message),
                               Printable(Trim(LineOf(text, mark.line)).substr(0, 60))),
                   std::move(hint));
}

size_t Digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

}  // namespace

YamlNode YamlNode::Scalar(std::string_view text, bool quoted) {
  YamlNode node;
  node.kind = Kind::kScalar;
  node.text = text;
  node.quoted = quoted;
  return node;
}

std::string WhereOf(const std::string& file, YamlMark mark) {
  if (mark.line == 0) return file;
  return fmt::format("{}:{}:{}", file, mark.line, mark.column);
}

Result<YamlNode> ParseYaml(std::string_view given, const std::string& file) {
  // Before the copy below: 10 MB are refused without reading them.
  if (given.size() > kYamlTextLimit) ATHANOR_CHECK_OK(CheckBytes(given, file));
  const std::string text = Normalised(given);
  ATHANOR_CHECK_OK(CheckBytes(text, file));
  TreeBuilder builder(file, text);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.Take();
  } catch (Refusal& refusal) {
    return Fail(std::move(refusal.error));
  } catch (const YAML::Exception& error) {
    return Fail(SyntaxError(file, text, builder.PlaceOf(error.mark), error.msg));
  } catch (const std::exception& error) {
    return Fail(SyntaxError(file, text, {}, error.what()));
  }
}

ScalarKind ScalarKindOf(std::string_view plain) {
  if (IsOneOf(plain, {"", "~", "null", "Null", "NULL"})) return ScalarKind::kNull;
  if (IsOneOf(plain, {"true", "True", "TRUE", "false", "False", "FALSE"})) return ScalarKind::kBool;
  std::string_view rest = plain;
  if (rest.front() == '-' || rest.front() == '+') rest.remove_prefix(1);
  const std::string word = ToLower(rest);
  if (IsOneOf(word, {".inf", "inf", ".nan", "nan"})) {
    return word.back() == 'n' && rest.size() != plain.size() ? ScalarKind::kString
                                                             : ScalarKind::kFloat;
  }
  const size_t whole = Digits(rest);
  // 007 is a code, not seven.
  if (whole > 1 && rest.front() == '0') return ScalarKind::kString;
  rest.remove_prefix(whole);
  if (rest.empty()) return whole > 0 ? ScalarKind::kInt : ScalarKind::kString;
  size_t fraction = 0;
  if (rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = Digits(rest);
    rest.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return ScalarKind::kString;
  if (rest.empty()) return ScalarKind::kFloat;
  if (rest.front() != 'e' && rest.front() != 'E') return ScalarKind::kString;
  rest.remove_prefix(1);
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  return !rest.empty() && Digits(rest) == rest.size() ? ScalarKind::kFloat : ScalarKind::kString;
}

ScalarKind ScalarKindOf(const YamlNode& scalar) {
  if (scalar.kind == YamlNode::Kind::kNull) return ScalarKind::kNull;
  return scalar.quoted ? ScalarKind::kString : ScalarKindOf(scalar.text);
}

}  // namespace athanor
