// s3://bucket/key-or-prefix: how a spec names things of the object store. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

struct ObjectUri {
  std::string bucket;
  std::string key;  // or prefix; may be empty

  // kInvalid: anything but s3://BUCKET or s3://BUCKET/KEY. (https:// forms are not taken.)
  static Result<ObjectUri> Parse(std::string_view text);
  std::string ToString() const;
  // Below this one: joined with exactly one slash.
  ObjectUri operator/(std::string_view name) const;
  bool operator==(const ObjectUri&) const = default;
};

bool IsObjectUri(std::string_view text);  // starts with s3://

// Where an object lies in the folder of a channel that takes `prefix`: its key without the
// prefix, or without the folders of a prefix that ends inside a name; a single object that is
// the prefix itself keeps its last name. Empty: nothing to lay out (the mark of a folder).
// kInvalid: the key is no path beneath a folder ("a//b", "..").
Result<std::string> NameInChannel(std::string_view prefix, std::string_view key);

}  // namespace athanor
