// The one table of the keys of a job file: name, type and meaning of each, and how it gets into a
// JobSpec. The parser, "did you mean", the JSON schema and the reference page are all made from it.
// Internal to this room.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"
#include "job/spec.h"
#include "submit/yaml.h"

namespace athanor {

enum class KeyType {
  kText,
  kCount,         // whole, not negative
  kCountOrRange,  // from 1, or two of them as "1..4"
  kInteger,
  kNumber,  // not negative
  kSigned,  // any number
  kBool,
  kDuration,
  kBytes,
  kTextList,
  kTextMap,    // names to texts
  kCommand,    // text for a shell, or a list of words
  kParams,     // names to anything
  kPatterns,   // a list of texts, "none", or a map whose keys are rows "path.key"
  kGroup,      // a map whose keys are rows "path.key"
  kGroupMap,   // names to (a text, or a map with rows "path.*.key")
  kGroupList,  // a list of (a text, or a map with rows "path[].key")
};

// Where a value that is being read comes from, for error messages.
struct KeySource {
  std::string file;  // "job.yaml", or the flag
};

struct KeyRow {
  std::string_view path;  // "limits.max_runtime", "data.*.from", "metrics[].name"
  KeyType type;
  std::string_view doc;      // one sentence
  std::string_view example;  // as YAML, what follows "key: "
  std::string_view choices;  // "file|shared"; empty: anything. Of a count: words it may be instead
  // nullptr: known, but not available yet.
  Status (*set)(const KeySource& source, JobSpec& spec, const YamlNode& node);
};

// A number in a form that every language reads: Python knows "inf" but not ".inf".
std::string NumberText(std::string_view plain);

// As JSON: ScalarKindOf decides what a plain scalar means.
Json JsonOf(const YamlNode& node);

std::span<const KeyRow> KeyRows();
const KeyRow* FindKey(std::string_view path);
// The keys that are allowed in the map at `parent` ("" for the file itself).
std::vector<std::string> KeysUnder(std::string_view parent);

// Reads the map `node` by the rows under `parent` into `spec`.
Status ReadGroup(const KeySource& source, JobSpec& spec, std::string_view parent,
                 const YamlNode& node);

}  // namespace athanor
