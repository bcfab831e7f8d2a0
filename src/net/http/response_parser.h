// Parses HTTP/1.1 responses as their bytes arrive. Pure: no sockets, no clock. Interim (1xx)
// answers are skipped; `saw_continue` reports a 100. Strict: both lengths given, folded headers or
// a bad chunk are kCorrupt.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "net/http/http_types.h"

namespace athanor {

class ResponseParser {
 public:
  static constexpr size_t kMaxHead = 256 << 10;

  // The answer to a HEAD request has no body, whatever its headers say.
  explicit ResponseParser(bool to_head_request) : no_body_(to_head_request) {}

  // Consumes bytes up to the end of the response and returns how many; body bytes go to `on_body`
  // in order, which may return false to stop there.
  Result<size_t> Feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_body);
  // The connection ended. Fine for a body without a length, else kUnavailable.
  Status Eof();

  bool saw_continue() const { return saw_continue_; }
  bool head_done() const { return state_ > State::kHead; }
  bool done() const { return state_ == State::kDone; }
  bool stopped() const { return stopped_; }
  bool keep_alive() const { return keep_alive_; }  // valid once done
  int status() const { return status_; }
  Headers& headers() { return headers_; }

 private:
  enum class State {
    kHead,
    kLength,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kUntilEof,
    kDone
  };

  Result<bool> TakeLine(std::string_view& bytes, std::string& line);
  Status HeadLine(const std::string& line);
  Status StatusLine(const std::string& line);
  Status EndOfHead();
  Status ChunkSize(const std::string& line);
  void TakeBody(std::string_view& bytes, const std::function<bool(std::string_view)>& on_body);

  State state_ = State::kHead;
  bool no_body_;
  bool saw_continue_ = false;
  bool keep_alive_ = false;
  bool stopped_ = false;
  bool have_status_line_ = false;
  int status_ = 0;
  int minor_version_ = 1;
  size_t head_bytes_ = 0;
  uint64_t left_ = 0;
  std::string line_;  // an unfinished line
  Headers headers_;
};

}  // namespace athanor
