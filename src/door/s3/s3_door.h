// The S3 door: the REST XML protocol, path style, over the embedded ObjectStore. Which request is
// which operation, and what scope it needs, is one table. Bodies of objects are not held in memory:
// they come in by a BodySink and are sent as file pieces.
//
// Threads: called on the loop's; operations run on the context's transfer threads.
#pragma once

#include <memory>
#include <string_view>

#include "door/aws/aws_front.h"

namespace athanor {

class S3Door {
 public:
  explicit S3Door(DoorContext& context) : context_(context) {}

  // For a request whose signature was verified. Objects and parts go to a sink.
  BodyPolicy PolicyFor(const Request& head, AwsIdentity identity);
  // The request whose body such a sink received.
  void HandleUpload(Request request, Responder responder);
  // Any other; `body_sha256` is that of the body in memory.
  void Handle(AwsCall call, std::string_view body_sha256);

 private:
  DoorContext& context_;
};

Response S3Refusal(const Request& head, const AwsError& error, std::string_view request_id);

}  // namespace athanor
