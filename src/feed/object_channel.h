// Data channels from the object store. `file`: every object below the channel's prefix, or every
// one its manifest lists, is written as a file before the start, so the script may write to its
// copy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "feed/channel.h"
#include "job/object_uri.h"
#include "link/objects_client.h"

namespace athanor {

// What SageMaker calls a ManifestFile: a JSON array, first {"prefix": "s3://b/p/"}, then the
// rest of each object's name. `prefix` is what the names in the channel are relative to.
struct ObjectManifest {
  ObjectUri prefix;
  std::vector<std::string> names;
};
Result<ObjectManifest> ParseObjectManifest(std::string_view text);  // kInvalid

// kNotFound: there is nothing (with the prefix); kInvalid: an object that cannot be a file.
Result<ChannelUse> FetchChannel(ObjectsClient& objects, const ChannelSpec& channel,
                                const std::string& to);

// The same for a prefix that may be empty: what is there, if anything.
Result<ChannelUse> FetchPrefix(ObjectsClient& objects, const ObjectUri& prefix,
                               const std::string& to);

}  // namespace athanor
