// How an agent reaches the objects that its job names: the server's object store through the routes
// for agents. It sees only what the job's channels, checkpoints and outputs name.
//
// Threads: one at a time. Errors: refusals of the server, with its message; and those of
// net/http/http_client.h, but a server on another machine is waited for (AskPatiently).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/object_uri.h"
#include "link/plan.h"
#include "link/server_line.h"
#include "net/http/http_client.h"

namespace athanor {

struct RemoteObject {
  ObjectUri uri;
  uint64_t size = 0;
  std::string etag;
};

class ObjectsClient {
 public:
  explicit ObjectsClient(const AttemptPlan& plan);

  // Every object below `prefix`, in byte order; an error of `visit` ends it.
  using Visit = std::function<Status(const RemoteObject&)>;
  Status ForEach(const ObjectUri& prefix, const Visit& visit);
  // The bytes of an object as it was listed, to `fd`; kConflict if it has changed since.
  Status Get(const RemoteObject& object, int fd);
  Result<std::string> Read(const ObjectUri& object, uint64_t max_bytes);
  // `length` bytes of `fd` from its beginning, all or nothing.
  Status Put(const ObjectUri& object, int fd, uint64_t length);

 private:
  Result<HttpReply> Do(HttpCall call, const std::function<Status()>& again = {});

  Result<ServerLine> line_;
  std::optional<HttpClient> client_;
};

}  // namespace athanor
