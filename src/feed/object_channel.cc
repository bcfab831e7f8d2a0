#include "feed/object_channel.h"

#include <fcntl.h>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr uint64_t kMostManifest = 64ull << 20;

Status FetchOne(ObjectsClient& objects, const RemoteObject& object, const std::string& name,
                const std::string& to, ChannelUse& use) {
  const std::string path = JoinPath(to, name);
  ATHANOR_CHECK_OK(MakeDirs(DirName(path), 0755));
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) {
    // "a" and "a/b" are both valid names of objects; as files only one of them is possible.
    return FailErrno("lay out object " + Printable(object.uri.ToString()), errno);
  }
  ATHANOR_CHECK_OK(objects.Get(object, file.get()));
  ++use.files;
  use.bytes += object.size;
  return Ok();
}

Error Nothing(const std::string& where) {
  return Error{ErrorCode::kNotFound, "no object lies below " + Printable(where),
               "aws s3 ls " + ShellQuote(where)};
}

}  // namespace

Result<ObjectManifest> ParseObjectManifest(std::string_view text) {
  auto refuse = [](std::string why) {
    return Fail(Error{ErrorCode::kInvalid, "the channel's manifest cannot be read",
                      R"(write it like  [{"prefix": "s3://bucket/folder/"}, "a.bin", "b.bin"])"}
                    .Why(std::move(why)));
  };
  auto list = ParseJson(text);
  if (!list) return refuse(list.error().what);
  if (!list->is_array() || list->empty() || !list->front().is_object() ||
      !list->front().contains("prefix") || !list->front()["prefix"].is_string()) {
    return refuse("it is no list that begins with a prefix");
  }
  auto prefix = ObjectUri::Parse(list->front()["prefix"].get<std::string>());
  if (!prefix) return refuse(prefix.error().what);
  ObjectManifest manifest{*prefix, {}};
  for (size_t i = 1; i < list->size(); ++i) {
    if (!(*list)[i].is_string()) return refuse("entry " + std::to_string(i) + " is no text");
    manifest.names.push_back((*list)[i].get<std::string>());
  }
  return manifest;
}

Result<ChannelUse> FetchPrefix(ObjectsClient& objects, const ObjectUri& prefix,
                               const std::string& to) {
  ChannelUse use;
  ATHANOR_CHECK_OK(MakeDirs(to, 0755));
  ATHANOR_CHECK_OK(objects.ForEach(prefix, [&](const RemoteObject& object) -> Status {
    ATHANOR_TRY(const auto name, NameInChannel(prefix.key, object.uri.key));
    if (name.empty()) return Ok();
    return FetchOne(objects, object, name, to, use);
  }));
  return use;
}

Result<ChannelUse> FetchChannel(ObjectsClient& objects, const ChannelSpec& channel,
                                const std::string& to) {
  ATHANOR_TRY(const auto from, ObjectUri::Parse(channel.from));
  if (!channel.manifest) {
    ATHANOR_TRY(const auto use, FetchPrefix(objects, from, to));
    if (use.files == 0) return Fail(Nothing(channel.from));
    return use;
  }
  ATHANOR_TRY(const auto text, objects.Read(from, kMostManifest));
  ATHANOR_TRY(const auto manifest, ParseObjectManifest(text));
  ChannelUse use;
  ATHANOR_CHECK_OK(MakeDirs(to, 0755));
  for (const auto& rest : manifest.names) {
    const ObjectUri wanted{manifest.prefix.bucket, manifest.prefix.key + rest};
    bool found = false;
    ATHANOR_CHECK_OK(objects.ForEach(wanted, [&](const RemoteObject& object) -> Status {
      if (object.uri.key != wanted.key) return Ok();
      found = true;
      ATHANOR_TRY(const auto name, NameInChannel(manifest.prefix.key, object.uri.key));
      return name.empty() ? Ok() : FetchOne(objects, object, name, to, use);
    }));
    if (!found) return Fail(Nothing(wanted.ToString()));
  }
  return use;
}

}  // namespace athanor
