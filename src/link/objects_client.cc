#include "link/objects_client.h"

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

std::string Target(const char* route, const ObjectUri& uri) {
  return std::string(route) + "?uri=" + UrlEncode(uri.ToString());
}

tl::unexpected<Error> Refused(const HttpReply& reply) {
  Error error;
  error.code = reply.status == 404                          ? ErrorCode::kNotFound
               : reply.status == 409 || reply.status == 412 ? ErrorCode::kConflict
               : reply.status == 507                        ? ErrorCode::kExhausted
               : reply.status >= 500                        ? ErrorCode::kUnavailable
                                                            : ErrorCode::kInvalid;
  error.what = "the server refused: " + std::to_string(reply.status);
  if (auto body = ParseJson(reply.body); body && body->is_object() && body->contains("error")) {
    const auto& said = (*body)["error"];
    error.what = said.value("what", error.what);
    error.why = said.value("why", "");
    error.hint = said.value("hint", "");
  }
  return Fail(std::move(error));
}

}  // namespace

ObjectsClient::ObjectsClient(const AttemptPlan& plan)
    : endpoint_(Endpoint::Parse(plan.server)), token_(plan.token) {
  if (endpoint_) client_ = std::make_unique<HttpClient>(*endpoint_);
}

Result<HttpReply> ObjectsClient::Do(HttpCall call) {
  if (!client_) return Fail(endpoint_.error());
  call.headers.Add("Authorization", "Bearer " + token_);
  call.idempotent = true;
  ATHANOR_TRY(auto reply, client_->Do(call));
  if (!reply.ok()) return Refused(reply);
  return reply;
}

Status ObjectsClient::ForEach(const ObjectUri& prefix, const Visit& visit) {
  std::string after;
  for (;;) {
    HttpCall call;
    call.target = Target("/agent/v1/objects", prefix);
    if (!after.empty()) call.target += "&after=" + UrlEncode(after);
    ATHANOR_TRY(auto reply, Do(std::move(call)));
    ATHANOR_TRY(auto page, ParseJson(reply.body));
    for (const auto& row : page["objects"]) {
      RemoteObject object{{prefix.bucket, row["key"].get<std::string>()},
                          row["size"].get<uint64_t>(),
                          row["etag"].get<std::string>()};
      ATHANOR_CHECK_OK(visit(object));
    }
    after = page.value("after", "");
    if (after.empty()) return Ok();
  }
}

Status ObjectsClient::Get(const RemoteObject& object, int fd) {
  HttpCall call;
  call.target = Target("/agent/v1/object", object.uri);
  call.headers.Add("If-Match", "\"" + object.etag + "\"");
  call.body_to_fd = fd;
  ATHANOR_TRY([[maybe_unused]] auto reply, Do(std::move(call)));
  return Ok();
}

Result<std::string> ObjectsClient::Read(const ObjectUri& object, uint64_t max_bytes) {
  HttpCall call;
  call.target = Target("/agent/v1/object", object);
  call.max_body = max_bytes;
  ATHANOR_TRY(auto reply, Do(std::move(call)));
  return std::move(reply.body);
}

Status ObjectsClient::Put(const ObjectUri& object, int fd, uint64_t length) {
  HttpCall call;
  call.method = "PUT";
  call.target = Target("/agent/v1/object", object);
  call.body_fd = fd;
  call.body_length = length;
  call.read_timeout = std::chrono::minutes(10);  // a large object is synced before the answer
  ATHANOR_TRY([[maybe_unused]] auto reply, Do(std::move(call)));
  return Ok();
}

}  // namespace athanor
