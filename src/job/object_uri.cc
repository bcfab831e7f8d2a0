#include "job/object_uri.h"

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kScheme = "s3://";

}  // namespace

bool IsObjectUri(std::string_view text) { return StartsWith(text, kScheme); }

Result<ObjectUri> ObjectUri::Parse(std::string_view text) {
  if (IsObjectUri(text)) {
    const auto rest = text.substr(kScheme.size());
    const size_t slash = std::min(rest.find('/'), rest.size());
    ObjectUri uri{std::string(rest.substr(0, slash)),
                  std::string(rest.substr(std::min(slash + 1, rest.size())))};
    if (!uri.bucket.empty()) return uri;
  }
  return Fail(ErrorCode::kInvalid, Printable(text) + " names no object",
              "write it like  s3://bucket/folder");
}

std::string ObjectUri::ToString() const { return std::string(kScheme) + bucket + "/" + key; }

ObjectUri ObjectUri::operator/(std::string_view name) const {
  ObjectUri below = *this;
  if (!below.key.empty() && below.key.back() != '/') below.key += '/';
  below.key += name;
  return below;
}

Result<std::string> NameInChannel(std::string_view prefix, std::string_view key) {
  if (!key.empty() && key.back() == '/') return std::string();
  std::string_view name = key;
  const bool whole = prefix.empty() || prefix.back() == '/' || prefix.size() == key.size() ||
                     (key.size() > prefix.size() && key[prefix.size()] == '/');
  if (whole && key.size() > prefix.size()) {
    name.remove_prefix(prefix.size());
    if (!prefix.empty() && prefix.back() != '/') name.remove_prefix(1);
  } else {
    // The prefix is the object itself, or ends inside a name: its folders are removed.
    const size_t slash = prefix.rfind('/');
    name.remove_prefix(slash == std::string_view::npos ? 0 : slash + 1);
  }
  if (auto checked = CheckRelativeName(name); !checked) {
    return Fail(Error{ErrorCode::kInvalid,
                      "object " + Printable(key) + " cannot be a file of a channel",
                      "rename the object, or give a prefix that leaves it out"}
                    .Why(checked.error().what));
  }
  return std::string(name);
}

}  // namespace athanor
