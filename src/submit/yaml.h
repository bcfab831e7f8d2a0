// YAML text to a plain node tree with positions. The one file that includes yaml-cpp is yaml.cc;
// nothing of it, and none of its exceptions, leaves that file. Scalars keep the text as written;
// this code decides what a plain one means (ScalarKindOf), not the library: 1e-4 is a number, `on`
// and `yes` are words.
//
// Limits, each refused with a reason and a position: 1 MiB of text, 32 levels, 10,000 nodes and 1
// MiB of scalars after aliases are expanded, one document, no key twice, no merge keys, only the
// standard tags, no control characters. JSON is accepted, too, because it is YAML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

// From 1; columns count characters, not bytes. 0: not from a file.
struct YamlMark {
  uint32_t line = 0;
  uint32_t column = 0;
  bool operator==(const YamlMark&) const = default;
};

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  std::string text;                // of a scalar
  bool quoted = false;             // it was in quotes or a block, so it is a string in any case
  YamlMark mark;                   // of an alias: where the anchored node is
  std::vector<YamlNode> items;     // of a sequence
  std::vector<YamlEntry> entries;  // of a map, in the order written

  static YamlNode Scalar(std::string_view text, bool quoted = false);
};

struct YamlEntry {
  std::string key;
  YamlMark mark;  // of the key
  YamlNode value;
};

inline constexpr size_t kYamlTextLimit = 1 << 20;
inline constexpr size_t kYamlDepthLimit = 32;
inline constexpr size_t kYamlNodeLimit = 10'000;

// `file` is only used to say where: "job.yaml:22:10". An empty text is a null node.
Result<YamlNode> ParseYaml(std::string_view text, const std::string& file);

// What a plain scalar means. Only true and false (also True, TRUE, ...) are bools;
// numbers are decimal, with no leading zero, or inf and nan with or without the dot.
enum class ScalarKind { kNull, kBool, kInt, kFloat, kString };
ScalarKind ScalarKindOf(std::string_view plain);
ScalarKind ScalarKindOf(const YamlNode& scalar);

// "job.yaml:22:10"; the file alone for a node without a place.
std::string WhereOf(const std::string& file, YamlMark mark);

}  // namespace athanor
