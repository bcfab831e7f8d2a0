// s3://bucket/key-or-prefix: how a spec names objects and prefixes of the object store. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

struct ObjectUri {
  std::string bucket;
  std::string key;  // or prefix; may be empty

  // kInvalid: anything other than s3://BUCKET or s3://BUCKET/KEY. (https:// forms are not
  // accepted.)
  static Result<ObjectUri> Parse(std::string_view text);
  std::string ToString() const;
  // Below this one: joined with exactly one slash.
  ObjectUri operator/(std::string_view name) const;
  bool operator==(const ObjectUri&) const = default;
};

bool IsObjectUri(std::string_view text);  // starts with s3://

// The path of an object in the folder of a channel that has `prefix`: its key without the prefix,
// or without the folders of a prefix that ends inside a name. A single object that is the prefix
// itself keeps its last name. Empty: nothing to write (the marker of a folder). kInvalid: the key
// is not a path beneath a folder ("a//b", "..").
Result<std::string> NameInChannel(std::string_view prefix, std::string_view key);

}  // namespace athanor
