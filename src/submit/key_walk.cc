// How the rows of job_keys.h are found, and how a map is read by them.
#include "base/text/format.h"
#include "base/text/text.h"
#include "submit/errors.h"
#include "submit/job_keys.h"
#include "submit/key_errors.h"

namespace athanor {
namespace {

std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.find_last_of('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string PathOf(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

Status UnknownKey(const KeySource& source, std::string_view parent, const YamlEntry& entry) {
  const auto known = KeysUnder(parent);
  std::string hint = "known here: " + Join(known, ", ");
  if (const auto near = Nearest(entry.key, known)) {
    hint = fmt::format("did you mean '{}'?", *near);
  } else {
    // A key of another level, most often of the right group one level up or down.
    for (const auto& row : KeyRows()) {
      if (row.set != nullptr && row.path.substr(row.path.find_last_of('.') + 1) == entry.key) {
        hint = fmt::format("it belongs elsewhere: {}", row.path);
        break;
      }
    }
  }
  return AtMark(source, entry.mark,
                Refuse("ATH-S0105", "unknown key " + Quoted(entry.key),
                       parent.empty() ? "no key of a job file has this name"
                                      : fmt::format("'{}' has no such key", parent),
                       std::move(hint)));
}

}  // namespace

const KeyRow* FindKey(std::string_view path) {
  for (const auto& row : KeyRows()) {
    if (row.path == path) return &row;
  }
  return nullptr;
}

std::vector<std::string> KeysUnder(std::string_view parent) {
  std::vector<std::string> keys;
  for (const auto& row : KeyRows()) {
    if (row.set == nullptr || ParentOf(row.path) != parent) continue;
    keys.emplace_back(row.path.substr(parent.empty() ? 0 : parent.size() + 1));
  }
  return keys;
}

Status ReadGroup(const KeySource& source, JobSpec& spec, std::string_view parent,
                 const YamlNode& node) {
  // `limits:` with everything below it commented out.
  if (node.kind == YamlNode::Kind::kNull && !parent.empty()) return Ok();
  if (node.kind != YamlNode::Kind::kMap) {
    return WrongKind(source, node, parent.empty() ? "a job file" : parent, "a map of keys");
  }
  for (const auto& entry : node.entries) {
    // "*" and "[]" are how rows are written, not keys.
    const KeyRow* row = entry.key.find_first_of(".*[") == std::string::npos
                            ? FindKey(PathOf(parent, entry.key))
                            : nullptr;
    if (row == nullptr) return UnknownKey(source, parent, entry);
    if (row->set == nullptr) {
      return AtMark(source, entry.mark,
                    Refuse("ATH-S0108", fmt::format("'{}' is not available yet", row->path),
                           "this version cannot do it, so it is not silently ignored",
                           "remove the key for now"));
    }
    ATHANOR_CHECK_OK(row->set(source, spec, entry.value));
  }
  return Ok();
}

}  // namespace athanor
