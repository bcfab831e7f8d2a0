#include "link/objects_client.h"

#include <unistd.h>

#include <cerrno>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

std::string Target(const char* route, const ObjectUri& uri) {
  return std::string(route) + "?uri=" + UrlEncode(uri.ToString());
}

tl::unexpected<Error> Refused(const HttpReply& reply) {
  Error error{reply.status == 404                          ? ErrorCode::kNotFound
              : reply.status == 409 || reply.status == 412 ? ErrorCode::kConflict
              : reply.status == 507                        ? ErrorCode::kExhausted
              : reply.status >= 500                        ? ErrorCode::kUnavailable
                                                           : ErrorCode::kInvalid,
              "the server refused: " + std::to_string(reply.status)};
  if (auto body = ParseJson(reply.body); body && body->is_object() && body->contains("error")) {
    const auto& said = (*body)["error"];
    error.what = said.value("what", error.what);
    error.why = said.value("why", "");
    error.hint = said.value("hint", "");
  }
  return Fail(std::move(error));
}

}  // namespace

ObjectsClient::ObjectsClient(const AttemptPlan& plan) : line_(ServerLine::Of(plan)) {
  if (line_) client_.emplace(line_->Client());
}

Result<HttpReply> ObjectsClient::Do(HttpCall call, const std::function<Status()>& again) {
  if (!client_) return Fail(line_.error());
  line_->Sign(call);
  call.idempotent = true;
  ATHANOR_TRY(auto reply, AskPatiently(*line_, *client_, call, nullptr, again));
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
  const off_t from = ::lseek(fd, 0, SEEK_CUR);
  ATHANOR_TRY([[maybe_unused]] auto reply, Do(std::move(call), [fd, from]() -> Status {
                if (::ftruncate(fd, from) == 0 && ::lseek(fd, from, SEEK_SET) == from) return Ok();
                return FailErrno("begin an object again", errno);
              }));
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
