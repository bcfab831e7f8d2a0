// The body of a PutObject or UploadPart while it arrives: decoded if it is aws-chunked, written to
// the store's own file, and checked when it is complete. Private to this folder.
//
// Threads: Take on the loop's, Finish on a transfer thread afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "door/aws/aws_front.h"
#include "door/s3/s3_call.h"
#include "net/aws/aws_chunked.h"

namespace athanor {

class S3Upload final : public BodySink {
 public:
  static tl::expected<std::shared_ptr<S3Upload>, AwsError> Begin(const Request& head,
                                                                 AwsIdentity identity,
                                                                 ObjectStore& store);
  void Take(std::string_view bytes) override;

  const AwsIdentity& identity() const { return identity_; }
  // Checks that the body is as promised and signed; then stores the object or part and answers the
  // call.
  void Finish(const S3Call& call);

 private:
  struct Checked {
    Digests digests;
    std::optional<ChecksumKind> checksum;
  };
  explicit S3Upload(AwsIdentity identity);
  tl::expected<Checked, AwsError> Check(const S3Call& call);
  void StoreObject(const S3Call& call, const Checked& checked);
  void StorePart(const S3Call& call, const Checked& checked);

  const AwsIdentity identity_;
  std::unique_ptr<ObjectWriter> writer_;
  std::optional<AwsChunkedDecoder> decoder_;
  std::optional<ChecksumKind> planned_;
  Status failed_;  // the first thing that went wrong; the rest of the body is dropped
};

}  // namespace athanor
