// Objects for agents, what their job's channels, checkpoints and outputs name, and for users, all.
#include <unistd.h>

#include <memory>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/queries.h"
#include "job/object_uri.h"

namespace athanor {
namespace {

constexpr size_t kPage = 1000;

bool Below(const std::string& named, const ObjectUri& uri) {
  auto root = ObjectUri::Parse(named);
  return root && root->bucket == uri.bucket && StartsWith(uri.key, root->key);
}

bool MayRead(const JobSpec& spec, const ObjectUri& uri) {
  for (const auto& channel : spec.data) {
    if (!IsObjectUri(channel.from)) continue;
    if (Below(channel.from, uri)) return true;
    // Its list may name anything in its bucket.
    auto list = ObjectUri::Parse(channel.from);
    if (channel.manifest && list && list->bucket == uri.bucket) return true;
  }
  return !spec.checkpoints.uri.empty() && Below(spec.checkpoints.uri, uri);
}

bool MayWrite(const JobSpec& spec, const ObjectUri& uri) {
  return (!spec.output_to.empty() && Below(spec.output_to, uri)) ||
         (!spec.checkpoints.uri.empty() && Below(spec.checkpoints.uri, uri));
}

// The object a call is about; for an agent only if its job names it. Refused otherwise.
std::optional<ObjectUri> Named(DoorContext& context, const Call& call,
                               bool (*may)(const JobSpec&, const ObjectUri&)) {
  auto uri = ObjectUri::Parse(call.request.Query("uri").value_or(""));
  if (!uri) {
    call.Refuse(uri.error());
    return std::nullopt;
  }
  if (!call.caller.attempt) return *uri;
  // Not of an attempt that was replaced: what it still sends is older than what is there now.
  const auto job = JobNowIn(context, *call.caller.attempt);
  const auto* live = job ? context.engine.Live(*job) : nullptr;
  if (!live) {
    call.responder.Send(AttemptOver());
    return std::nullopt;
  }
  if (!may(live->spec, *uri)) {
    call.Refuse(Error{ErrorCode::kDenied, "the job does not name " + Printable(uri->ToString())});
    return std::nullopt;
  }
  return *uri;
}

// The store's messages mention its own ids; an agent reads codes.
Error Plain(Error error) {
  if (error.id == kNoSuchBucket || error.id == kNoSuchKey) error.code = ErrorCode::kNotFound;
  error.id.clear();
  return error;
}

void ListStoredObjects(DoorContext& context, const Call& call) {
  auto uri = Named(context, call, MayRead);
  if (!uri) return;
  OnDisk(context, call, [&context, call, uri = *uri] {
    ListQuery query;
    query.prefix = uri.key;
    query.after = call.request.Query("after").value_or("");
    query.most = kPage;
    auto page = context.objects.List(uri.bucket, query);
    if (!page) return call.Refuse(Plain(page.error()));
    Json out = {{"objects", Json::array()}};
    for (const auto& object : page->objects) {
      out["objects"].push_back({{"key", object.key}, {"size", object.size}, {"etag", object.etag}});
    }
    if (page->truncated) out["after"] = page->last;
    call.Json(200, DumpJson(out));
  });
}

void Get(DoorContext& context, const Call& call) {
  auto uri = Named(context, call, MayRead);
  if (!uri) return;
  OnDisk(context, call, [&context, call, uri = *uri] {
    auto opened = context.objects.Open(uri.bucket, uri.key);
    if (!opened) return call.Refuse(Plain(opened.error()));
    std::shared_ptr<ObjectReader> reader = std::move(*opened);
    const auto& info = reader->info();
    const auto wanted = call.request.headers.Get("If-Match");
    if (!wanted.empty() && wanted != "\"" + info.etag + "\"") {
      return call.Refuse(Error{ErrorCode::kConflict,
                               "object " + Printable(uri.ToString()) + " was changed meanwhile",
                               "run it again"});
    }
    if (auto status = reader->Seek(0, info.size); !status) return call.Refuse(status.error());
    Response head;
    head.headers.Add("Content-Type", "application/octet-stream");
    call.responder.SendPieces(std::move(head), info.size, [reader]() -> std::optional<FileRange> {
      auto piece = reader->Next();
      return piece ? std::move(*piece) : std::nullopt;
    });
  });
}

Result<ObjectInfo> Store(ObjectStore& objects, const ObjectUri& uri, const Request& request) {
  ATHANOR_TRY(auto writer, objects.NewObject({}));
  if (request.body_file) {
    std::string buffer(1 << 20, '\0');
    for (off_t offset = 0;;) {
      const ssize_t n = ::pread(request.body_file->get(), buffer.data(), buffer.size(), offset);
      if (n < 0) return FailErrno("read an upload", errno);
      if (n == 0) break;
      offset += n;
      ATHANOR_CHECK_OK(writer->Write({buffer.data(), static_cast<size_t>(n)}));
    }
  } else {
    ATHANOR_CHECK_OK(writer->Write(request.body));
  }
  ATHANOR_TRY(const auto digests, writer->Finish());
  ObjectMeta meta;
  meta.headers["content-type"] = "application/octet-stream";
  return objects.Put(uri.bucket, uri.key, std::move(writer), digests, std::move(meta), std::nullopt,
                     {});
}

void Put(DoorContext& context, const Call& call) {
  auto uri = Named(context, call, MayWrite);
  if (!uri) return;
  OnDisk(context, call, [&context, call, uri = *uri] {
    auto stored = Store(context.objects, uri, call.request);
    if (!stored) return call.Refuse(Plain(stored.error()));
    call.Json(201, DumpJson({{"etag", stored->etag}}));
  });
}

}  // namespace

std::vector<DoorRoute> ObjectRoutes(DoorContext& context) {
  return {
      Native("agent.objects", [&context](const Call& call) { ListStoredObjects(context, call); }),
      Native("agent.object", [&context](const Call& call) { Get(context, call); }),
      Native("agent.put", [&context](const Call& call) { Put(context, call); }),
      Native("objects.list", [&context](const Call& call) { ListStoredObjects(context, call); }),
      Native("objects.get", [&context](const Call& call) { Get(context, call); }),
  };
}

}  // namespace athanor
