#include "net/aws/aws_chunked.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kLongestLine = 512;
constexpr size_t kLongestTrailer = 8 << 10;
constexpr uint64_t kLargestChunk = 1ull << 40;
constexpr std::string_view kSignature = "chunk-signature=";
constexpr std::string_view kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

tl::unexpected<Error> NotChunked(std::string what) {
  return Fail(ErrorCode::kInvalid, "the aws-chunked body is malformed: " + std::move(what));
}

}  // namespace

AwsChunkedDecoder::AwsChunkedDecoder(SigV4Payload mode, Seal seal)
    : signed_(mode == SigV4Payload::kSignedChunks || mode == SigV4Payload::kSignedChunksTrailer),
      trailer_(mode != SigV4Payload::kSignedChunks),
      seal_(std::move(seal)),
      previous_(seal_.seed) {}

Status AwsChunkedDecoder::Keep(Status status) {
  if (!status.ok()) failed_ = status;
  return status;
}

Status AwsChunkedDecoder::Feed(std::string_view bytes, const OnBytes& on_bytes) {
  if (!failed_.ok()) return failed_;
  while (!bytes.empty()) {
    if (state_ == State::kDone) return Keep(NotChunked("bytes after its end"));
    if (state_ == State::kData) {
      const auto piece = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
      if (signed_) hash_.Update(piece);
      if (on_bytes) on_bytes(piece);
      decoded_ += piece.size();
      left_ -= piece.size();
      bytes.remove_prefix(piece.size());
      if (left_ == 0) state_ = State::kDataEnd;
      continue;
    }
    const size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (line_.size() > (state_ == State::kTrailer ? kLongestTrailer : kLongestLine)) {
      return Keep(NotChunked("a line is too long"));
    }
    if (end == std::string_view::npos) return Ok();
    bytes.remove_prefix(end + 1);
    if (line_.empty() || line_.back() != '\r') return Keep(NotChunked("a line without CRLF"));
    line_.pop_back();
    const std::string line = std::exchange(line_, {});
    if (auto taken = TakeLine(line); !taken.ok()) return Keep(taken);
  }
  return Ok();
}

Status AwsChunkedDecoder::TakeLine(std::string_view line) {
  switch (state_) {
    case State::kSize:
      return SizeLine(line);
    case State::kDataEnd:
      if (!line.empty()) return NotChunked("a chunk is longer than its size says");
      return EndChunk();
    case State::kTrailer:
      return TrailerLine(line);
    case State::kData:
    case State::kDone:
      break;
  }
  return NotChunked("out of order");
}

Status AwsChunkedDecoder::SizeLine(std::string_view line) {
  const size_t mark = line.find(';');
  const auto digits = line.substr(0, mark);
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
  if (digits.empty() || error != std::errc() || stop != digits.data() + digits.size() ||
      left_ > kLargestChunk) {
    return NotChunked("a chunk's size cannot be read");
  }
  expected_.clear();
  if (mark != std::string_view::npos) {
    const auto extension = line.substr(mark + 1);
    if (StartsWith(extension, kSignature)) expected_ = extension.substr(kSignature.size());
  }
  if (signed_ && expected_.size() != 64) return NotChunked("a chunk has no signature");
  if (left_ > 0) {
    state_ = State::kData;
    return Ok();
  }
  ATHANOR_CHECK_OK(EndChunk());
  state_ = State::kTrailer;
  return Ok();
}

Status AwsChunkedDecoder::EndChunk() {
  state_ = State::kSize;
  if (!signed_) return Ok();
  const std::string text = "AWS4-HMAC-SHA256-PAYLOAD\n" + seal_.time + "\n" + seal_.scope + "\n" +
                           previous_ + "\n" + std::string(kEmptySha256) + "\n" +
                           std::exchange(hash_, Sha256()).HexDigest();
  const std::string right = Hex(HmacSha256(seal_.key, text));
  if (!SameSecretText(right, expected_)) {
    return Fail(ErrorCode::kDenied, "the signature of a chunk of the body is wrong");
  }
  previous_ = right;
  return Ok();
}

Status AwsChunkedDecoder::TrailerLine(std::string_view line) {
  if (line.empty()) {
    // Some writers put an empty line between the trailers and their signature.
    if (signed_ && trailer_ && trailer_signature_.empty() && !trailer_text_.empty()) return Ok();
    return EndTrailers();
  }
  if (!trailer_) return NotChunked("trailers where none were announced");
  trailer_bytes_ += line.size();
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || trailer_bytes_ > kLongestTrailer) {
    return NotChunked("a trailer cannot be read");
  }
  const std::string name = ToLower(Trim(line.substr(0, colon)));
  const std::string value(Trim(line.substr(colon + 1)));
  if (name == "x-amz-trailer-signature") {
    trailer_signature_ = value;
    return Ok();
  }
  trailer_text_ += name + ":" + value + "\n";
  trailers_.Add(name, value);
  return Ok();
}

Status AwsChunkedDecoder::EndTrailers() {
  if (signed_ && trailer_) {
    const std::string text = "AWS4-HMAC-SHA256-TRAILER\n" + seal_.time + "\n" + seal_.scope + "\n" +
                             previous_ + "\n" + Sha256Hex(trailer_text_);
    if (!SameSecretText(Hex(HmacSha256(seal_.key, text)), trailer_signature_)) {
      return Fail(ErrorCode::kDenied, "the signature of the body's trailers is wrong");
    }
  }
  state_ = State::kDone;
  return Ok();
}

Status AwsChunkedDecoder::Finish() const {
  if (!failed_.ok()) return failed_;
  if (state_ != State::kDone) return NotChunked("it ends before its last chunk");
  return Ok();
}

}  // namespace athanor
