// The "aws-chunked" body encoding, decoded as it arrives: chunks with or without signatures, and
// trailers. Bytes are passed on before the signature of their chunk is verified, so the receiver
// must not use them before Finish() has succeeded.
//
// Form:   <hex size>[;chunk-signature=<64 hex>]CRLF <bytes> CRLF … 0[;…]CRLF
//         [name:value CRLF]… [x-amz-trailer-signature:<64 hex> CRLF] CRLF
// Pure: no sockets, no clock. Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/io/hash.h"
#include "base/result.h"
#include "net/aws/sigv4.h"
#include "net/http/http_types.h"

namespace athanor {

class AwsChunkedDecoder {
 public:
  using OnBytes = std::function<void(std::string_view)>;
  // What the signatures of chunks are computed with; unused if none are expected.
  struct Seal {
    std::string key;  // SigV4SigningKey
    std::string time;
    std::string scope;
    std::string seed;  // the request's own signature
  };

  // `mode` is one of the three chunked ones; anything else behaves as unsigned.
  AwsChunkedDecoder(SigV4Payload mode, Seal seal);

  // kInvalid: not this encoding. kDenied: a chunk's signature is wrong. After an error, every call
  // returns that error again. Bytes after the end are kInvalid.
  Status Feed(std::string_view bytes, const OnBytes& on_bytes);
  // The body has ended: kInvalid if the encoding has not.
  Status Finish() const;

  const Headers& trailers() const { return trailers_; }  // names in lower case
  uint64_t decoded() const { return decoded_; }

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kDone };

  Status TakeLine(std::string_view line);
  Status SizeLine(std::string_view line);
  Status TrailerLine(std::string_view line);
  Status EndChunk();
  Status EndTrailers();
  Status Keep(Status status);

  const bool signed_;
  const bool trailer_;
  const Seal seal_;
  State state_ = State::kSize;
  std::string previous_;  // signature
  std::string expected_;  // of the current chunk
  std::string line_;      // an unfinished one
  uint64_t left_ = 0;
  uint64_t decoded_ = 0;
  Sha256 hash_;
  size_t trailer_bytes_ = 0;
  std::string trailer_text_;  // as it is signed
  std::string trailer_signature_;
  Headers trailers_;
  Status failed_;
};

}  // namespace athanor
