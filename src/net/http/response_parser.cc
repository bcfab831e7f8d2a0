#include "net/http/response_parser.h"

#include <algorithm>
#include <charconv>

#include "base/text/text.h"

namespace athanor {
namespace {

tl::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, "not an HTTP response: " + std::move(what));
}

bool IsTokenChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool ParseNumber(std::string_view text, int base, uint64_t& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return !text.empty() && error == std::errc() && stop == end;
}

}  // namespace

Result<size_t> ResponseParser::Feed(std::string_view bytes,
                                    const std::function<bool(std::string_view)>& on_body) {
  const size_t given = bytes.size();
  std::string line;
  while (!bytes.empty() && !done() && !stopped_) {
    switch (state_) {
      case State::kHead:
      case State::kChunkSize:
      case State::kChunkEnd:
      case State::kTrailer: {
        ATHANOR_TRY(const bool whole, TakeLine(bytes, line));
        if (!whole) break;
        if (state_ == State::kHead) {
          ATHANOR_CHECK_OK(HeadLine(line));
        } else if (state_ == State::kChunkSize) {
          ATHANOR_CHECK_OK(ChunkSize(line));
        } else if (state_ == State::kChunkEnd) {
          if (!line.empty()) return Corrupt("a chunk is longer than its size");
          state_ = State::kChunkSize;
        } else if (line.empty()) {
          state_ = State::kDone;
        }
        break;
      }
      case State::kLength:
      case State::kChunkData:
      case State::kUntilEof:
        TakeBody(bytes, on_body);
        break;
      case State::kDone:
        break;
    }
  }
  return given - bytes.size();
}

void ResponseParser::TakeBody(std::string_view& bytes,
                              const std::function<bool(std::string_view)>& on_body) {
  std::string_view piece = bytes;
  if (state_ != State::kUntilEof) piece = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
  bytes.remove_prefix(piece.size());
  if (!on_body(piece)) stopped_ = true;
  if (state_ == State::kUntilEof) return;
  left_ -= piece.size();
  if (left_ > 0) return;
  state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
}

Result<bool> ResponseParser::TakeLine(std::string_view& bytes, std::string& line) {
  const size_t end = bytes.find('\n');
  const std::string_view piece = bytes.substr(0, end == std::string_view::npos ? end : end + 1);
  head_bytes_ += piece.size();
  if (head_bytes_ > kMaxHead) return Corrupt("its headers are larger than 256 KiB");
  line_ += piece;
  bytes.remove_prefix(piece.size());
  if (end == std::string_view::npos) return false;
  line_.pop_back();
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  line = std::move(line_);
  line_.clear();
  return true;
}

Status ResponseParser::HeadLine(const std::string& line) {
  if (!have_status_line_) return StatusLine(line);
  if (line.empty()) return EndOfHead();
  const size_t colon = line.find(':');
  if (colon == std::string::npos || colon == 0) return Corrupt("a header without a name");
  if (!std::all_of(line.begin(), line.begin() + static_cast<ptrdiff_t>(colon), IsTokenChar)) {
    return Corrupt("a header name with odd characters");
  }
  const std::string_view value = Trim(std::string_view(line).substr(colon + 1));
  if (value.find_first_of(std::string_view("\0\r", 2)) != std::string_view::npos) {
    return Corrupt("a header value with control characters");
  }
  headers_.Add(line.substr(0, colon), std::string(value));
  return Ok();
}

Status ResponseParser::StatusLine(const std::string& line) {
  uint64_t status = 0;
  const bool shape = line.size() >= 12 && StartsWith(line, "HTTP/1.") && line[8] == ' ' &&
                     (line.size() == 12 || line[12] == ' ');
  if (!shape || !ParseNumber(std::string_view(line).substr(9, 3), 10, status) || status < 100) {
    return Corrupt("it starts with \"" + Printable(line.substr(0, 40)) + "\"");
  }
  status_ = static_cast<int>(status);
  minor_version_ = line[7] == '0' ? 0 : 1;
  have_status_line_ = true;
  return Ok();
}

Status ResponseParser::EndOfHead() {
  if (status_ < 200 && status_ != 101) {
    saw_continue_ |= status_ == 100;
    have_status_line_ = false;
    headers_ = {};
    return Ok();
  }
  keep_alive_ = minor_version_ == 1 ? !headers_.HasToken("Connection", "close")
                                    : headers_.HasToken("Connection", "keep-alive");
  head_bytes_ = 0;
  const size_t lengths = headers_.Count("Content-Length");
  if (no_body_ || status_ == 204 || status_ == 304 || status_ == 101) {
    state_ = State::kDone;
  } else if (headers_.Has("Transfer-Encoding")) {
    if (lengths > 0) return Corrupt("it gives both a length and a transfer encoding");
    if (headers_.Count("Transfer-Encoding") != 1 ||
        !SameName(headers_.Get("Transfer-Encoding"), "chunked")) {
      return Corrupt("a transfer encoding other than chunked");
    }
    state_ = State::kChunkSize;
  } else if (lengths > 0) {
    if (lengths > 1 || !ParseNumber(headers_.Get("Content-Length"), 10, left_)) {
      return Corrupt("a bad Content-Length");
    }
    state_ = left_ == 0 ? State::kDone : State::kLength;
  } else {
    keep_alive_ = false;
    state_ = State::kUntilEof;
  }
  return Ok();
}

Status ResponseParser::ChunkSize(const std::string& line) {
  head_bytes_ = 0;
  const std::string_view size = Trim(std::string_view(line).substr(0, line.find(';')));
  if (size.size() > 15 || !ParseNumber(size, 16, left_)) return Corrupt("a bad chunk size");
  state_ = left_ == 0 ? State::kTrailer : State::kChunkData;
  return Ok();
}

Status ResponseParser::Eof() {
  if (done()) return Ok();
  if (state_ == State::kUntilEof) {
    state_ = State::kDone;
    return Ok();
  }
  return Fail(ErrorCode::kUnavailable, head_done()
                                           ? "the server hung up in the middle of its answer"
                                           : "the server hung up without an answer");
}

}  // namespace athanor
