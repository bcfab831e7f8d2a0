#include "net/http/http_connection.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/io/files.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kReadAhead = 64 << 10;    // pipelined bytes kept while an answer is pending
constexpr size_t kKeptBuffer = 1 << 10;    // what an idle connection may keep
constexpr size_t kCopiedBody = 64 << 10;   // up to here one send is faster than one copy
constexpr size_t kWritePiece = 256 << 10;  // given to send at once
constexpr size_t kFilePiece = 1 << 20;     // given to sendfile at once
constexpr int kTurnsPerPump = 32;          // then it is the turn of the others
constexpr std::chrono::milliseconds kDrainTime{2'000};

void Drop(std::string& buffer, size_t count) {
  if (count == buffer.size()) {
    buffer.clear();
  } else {
    buffer.erase(0, count);
  }
}

void Release(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kKeptBuffer) std::string().swap(buffer);
}

// Built at most once a second; the server has one thread.
const std::string& DateText() {
  thread_local std::time_t cached_second = 0;
  thread_local std::string cached;
  const std::time_t now = std::time(nullptr);
  if (now != cached_second) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[64];
    const size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    cached.assign(text, size);
    cached_second = now;
  }
  return cached;
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  const size_t start = out.size();
  out += value;
  // A line end in a value would let its author forge headers.
  for (size_t i = start; i < out.size(); ++i) {
    if (static_cast<unsigned char>(out[i]) < 0x20 || out[i] == 0x7f) out[i] = ' ';
  }
  out += "\r\n";
}

bool IsHeaderName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// From here on, its Responder and Stream have no connection.
void EndExchange(Exchange& exchange) {
  exchange.over = true;
  exchange.connection.reset();
  exchange.stream_open = false;
  exchange.on_drained = nullptr;
  if (exchange.on_closed) exchange.loop.Post(std::exchange(exchange.on_closed, nullptr));
}

bool HasNoBody(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<ConnectionHost> host, UniqueFd fd, Peer peer,
                               std::unique_ptr<Transport> transport, std::unique_ptr<FdWatch> watch)
    : host_(std::move(host)),
      fd_(std::move(fd)),
      transport_(std::move(transport)),
      watch_(std::move(watch)),
      peer_(std::move(peer)),
      holder_(host_->places.Take(peer_)) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::Start(ConnectionList::iterator place) {
  place_ = place;
  SetDeadline(host_->options.idle_timeout);
  Pump();
}

void HttpConnection::Kill() {
  if (state_ == State::kDead) return;
  state_ = State::kDead;
  // The watch is destroyed before its descriptor: a closed number may be reused at once.
  watch_.reset();
  transport_.reset();
  fd_.reset();
  file_.reset();
  file_left_ = pieces_left_ = 0;
  next_piece_ = nullptr;
  if (exchange_) {
    const auto exchange = std::move(exchange_);
    EndExchange(*exchange);
  }
  const auto self = shared_from_this();  // the list may hold the last reference
  host_->connections.erase(place_);
  host_->places.Give(holder_);
}

bool HttpConnection::idle() const { return state_ == State::kHead && in_.empty() && !parser_; }

bool HttpConnection::headless() const {
  return state_ == State::kHead && (parser_ || !in_.empty() || !had_request_);
}

void HttpConnection::SetDeadline(std::chrono::milliseconds from_now) {
  deadline_ = std::chrono::steady_clock::now() + from_now;
}

void HttpConnection::CheckDeadline(TimePoint now) {
  if (now < deadline_ || state_ == State::kDead) return;
  const bool mid_request = state_ == State::kBody || (state_ == State::kHead && !idle());
  if (!mid_request) return Kill();
  Refuse(408, ErrorCode::kTimeout, "the request did not arrive in time");
  Pump();
}

void HttpConnection::Pump() {
  if (pumping_) {
    pump_again_ = true;
    return;
  }
  const auto self = shared_from_this();  // a step may end the connection
  pumping_ = true;
  turns_ = kTurnsPerPump;
  do {
    pump_again_ = false;
    while (state_ != State::kDead && Step()) {
    }
  } while (pump_again_ && state_ != State::kDead);
  pumping_ = false;
}

bool HttpConnection::Step() {
  switch (state_) {
    case State::kHead:
      return StepHead();
    case State::kPeer:
      return false;
    case State::kBody:
      return StepBody();
    case State::kAnswer:
      return StepAnswer();
    case State::kDrain:
      return StepDrain();
    case State::kDead:
      return false;
  }
  return false;
}

void HttpConnection::PumpSoon() {
  if (pump_posted_) return;
  pump_posted_ = true;
  host_->loop.Post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->pump_posted_ = false;
      self->Pump();
    }
  });
}

void HttpConnection::WaitReadable() {
  if (waiting_read_) return;
  waiting_read_ = true;
  watch_->WhenReadable([this] {
    waiting_read_ = false;
    Pump();
  });
}

void HttpConnection::WaitWritable() {
  if (waiting_write_) return;
  waiting_write_ = true;
  watch_->WhenWritable([this] {
    waiting_write_ = false;
    Pump();
  });
}

HttpConnection::Filled HttpConnection::Fill() {
  // A read now would be a wasted system call.
  if (waiting_read_) return Filled::kWait;
  if (std::exchange(drained_, false)) {
    WaitReadable();
    return Filled::kWait;
  }
  if (turns_-- <= 0) {
    PumpSoon();
    return Filled::kWait;
  }
  const auto outcome = transport_->Read(host_->scratch.data(), host_->scratch.size());
  switch (outcome.io) {
    case Transport::Io::kDone:
      in_.append(host_->scratch.data(), outcome.bytes);
      drained_ = outcome.drained;
      return Filled::kSome;
    case Transport::Io::kWantRead:
      WaitReadable();
      return Filled::kWait;
    case Transport::Io::kWantWrite:
      WaitWritable();
      return Filled::kWait;
    case Transport::Io::kEof:
      peer_ended_ = true;
      return Filled::kEnd;
    case Transport::Io::kError:
      Kill();
      return Filled::kEnd;
  }
  return Filled::kEnd;
}

bool HttpConnection::StepHead() {
  if (!in_.empty()) {
    if (!parser_) {
      parser_ = std::make_unique<RequestParser>(host_->options.max_head_bytes);
      SetDeadline(host_->options.head_timeout);
    }
    Drop(in_, parser_->Feed(in_, {}));
    if (parser_->problem()) {
      const auto problem = *parser_->problem();
      Refuse(problem.status, ErrorCode::kInvalid, problem.what);
      return true;
    }
    if (parser_->head_done()) {
      HeadDone();
      return true;
    }
  }
  if (peer_ended_) {
    Kill();
    return false;
  }
  if (in_.empty() && !parser_) {
    Release(in_);
    Release(out_);
  }
  switch (Fill()) {
    case Filled::kSome:
      return true;
    case Filled::kWait:
      return false;
    case Filled::kEnd:
      return state_ != State::kDead;
  }
  return false;
}

void HttpConnection::HeadDone() {
  Request& request = parser_->request();
  request.peer = peer_;
  had_request_ = true;
  if (PeerJudged()) TakeRequest();
}

bool HttpConnection::PeerJudged() {
  if (!host_->peer_judge || peer_.acts_for_uid) return true;
  const bool asked =
      host_->peer_judge(parser_->request(), [weak = weak_from_this()](bool acts_for_uid) {
        const auto self = weak.lock();
        if (!self || self->state_ == State::kDead) return;
        self->peer_.acts_for_uid = acts_for_uid;
        if (self->state_ != State::kPeer) return;
        self->parser_->request().peer = self->peer_;
        self->TakeRequest();
        self->Pump();
      });
  if (asked && !peer_.acts_for_uid) {
    state_ = State::kPeer;
    SetDeadline(host_->options.body_timeout);
    return false;
  }
  parser_->request().peer = peer_;
  return true;
}

void HttpConnection::TakeRequest() {
  Request& request = parser_->request();
  close_after_ = !parser_->keep_alive();
  to_head_ = request.method == "HEAD";
  to_http10_ = request.minor_version == 0;
  policy_ =
      std::make_unique<BodyPolicy>(host_->body_policy ? host_->body_policy(request) : BodyPolicy{});
  if (policy_->refuse) {
    close_after_ |= !parser_->done();
    Response response = std::move(*policy_->refuse);
    state_ = State::kAnswer;
    exchange_ = std::make_shared<Exchange>(host_->loop);
    Answer(exchange_.get(), std::move(response));
    return;
  }
  if (parser_->content_length().value_or(0) > policy_->max_bytes) {
    return Refuse(413, ErrorCode::kInvalid,
                  "the body is larger than the " + std::to_string(policy_->max_bytes) +
                      " bytes allowed here");
  }
  if (parser_->expects_continue() && !parser_->done() && in_.empty()) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  state_ = State::kBody;
  body_start_ = std::chrono::steady_clock::now();
  SetDeadline(host_->options.body_timeout);
}

bool HttpConnection::StepBody() {
  if (backlog() > 0 && !Flush() && state_ == State::kDead) return false;
  if (parser_->done()) {
    CallHandler();
    return true;
  }
  if (!in_.empty() && TakeBody()) return true;
  if (peer_ended_) {
    Kill();  // half a request: no client is waiting for an answer
    return false;
  }
  return Fill() == Filled::kSome || (peer_ended_ && state_ != State::kDead);
}

bool HttpConnection::TakeBody() {
  Request& request = parser_->request();
  const size_t taken = parser_->Feed(in_, [this, &request](std::string_view bytes) {
    request.body_size += bytes.size();
    if (request.body_size > policy_->max_bytes) return;
    if (policy_->sink) return policy_->sink->Take(bytes);
    if (policy_->spool) return SpoolBody(bytes);
    request.body += bytes;
  });
  Drop(in_, taken);
  if (request.body_size > policy_->max_bytes) {
    Refuse(413, ErrorCode::kInvalid,
           "the body is larger than the " + std::to_string(policy_->max_bytes) +
               " bytes allowed here");
  } else if (!spool_error_.empty()) {
    Refuse(507, ErrorCode::kExhausted, "the body could not be stored: " + spool_error_);
  } else if (parser_->problem()) {
    Refuse(400, ErrorCode::kInvalid, parser_->problem()->what);
  } else if (taken == 0) {
    if (in_.size() <= host_->options.max_head_bytes) return false;
    Refuse(400, ErrorCode::kInvalid, "a chunk header is too large");
  }
  const auto& options = host_->options;
  const auto allowed =
      options.body_timeout +
      std::chrono::seconds(request.body_size / std::max<uint64_t>(options.min_body_rate, 1));
  if (state_ == State::kBody) deadline_ = body_start_ + allowed;
  return true;
}

void HttpConnection::SpoolBody(std::string_view bytes) {
  if (!spool_error_.empty()) return;
  if (const Status written = WriteAll(policy_->spool.get(), bytes); !written.ok()) {
    spool_error_ = written.error().what;
  }
}

void HttpConnection::CallHandler() {
  state_ = State::kAnswer;
  deadline_ = TimePoint::max();
  Request request = std::move(parser_->request());
  if (policy_->spool) request.body_file = std::make_shared<UniqueFd>(std::move(policy_->spool));
  request.body_sink = std::move(policy_->sink);
  parser_.reset();
  policy_.reset();
  exchange_ = std::make_shared<Exchange>(host_->loop);
  exchange_->connection = weak_from_this();
  Responder responder;
  responder.handle_ = Responder::HandleFor(exchange_);
  host_->handler(std::move(request), std::move(responder));
}

void HttpConnection::Refuse(int status, ErrorCode code, std::string what) {
  close_after_ = true;
  state_ = State::kAnswer;
  exchange_ = std::make_shared<Exchange>(host_->loop);
  Answer(exchange_.get(), ErrorResponse(status, Error{code, std::move(what)}));
}

void HttpConnection::BeginAnswer(Response& head, std::optional<uint64_t> length) {
  answer_begun_ = true;
  close_after_ |= head.headers.HasToken("Connection", "close");
  chunked_ = !length && !to_http10_ && !HasNoBody(head.status);
  if (!length && to_http10_) close_after_ = true;
  out_ += "HTTP/1.1 ";
  out_ += std::to_string(head.status);
  out_ += ' ';
  out_ += StatusText(head.status);
  out_ += "\r\n";
  std::string own_length;
  for (const auto& [name, value] : head.headers.fields()) {
    if (SameName(name, "Content-Length")) own_length = value;
    const bool ours = SameName(name, "Content-Length") || SameName(name, "Connection") ||
                      SameName(name, "Transfer-Encoding");
    if (!ours && IsHeaderName(name)) AppendHeader(out_, name, value);
  }
  if (!head.headers.Has("X-Content-Type-Options")) out_ += "X-Content-Type-Options: nosniff\r\n";
  if (!head.headers.Has("Date")) AppendHeader(out_, "Date", DateText());
  if (chunked_) {
    out_ += "Transfer-Encoding: chunked\r\n";
  } else if (to_head_ && length == 0 && !own_length.empty()) {
    AppendHeader(out_, "Content-Length", own_length);  // what a GET would give
  } else if (length && !HasNoBody(head.status)) {
    AppendHeader(out_, "Content-Length", std::to_string(*length));
  }
  if (close_after_) {
    out_ += "Connection: close\r\n";
  } else if (to_http10_) {
    out_ += "Connection: keep-alive\r\n";
  }
  out_ += "\r\n";
  SetDeadline(host_->options.write_timeout);
}

void HttpConnection::Answer(const Exchange* exchange, Response response) {
  if (exchange != exchange_.get() || state_ != State::kAnswer || answer_begun_) return;
  BeginAnswer(response, response.body.size());
  if (!to_head_ && !HasNoBody(response.status)) {
    if (response.body.size() <= kCopiedBody) {
      out_ += response.body;
    } else {
      body_ = std::move(response.body);
    }
  }
  answer_whole_ = true;
  Pump();
}

void HttpConnection::AnswerFile(const Exchange* exchange, Response head, UniqueFd fd,
                                uint64_t offset, uint64_t length) {
  if (exchange != exchange_.get() || state_ != State::kAnswer || answer_begun_) return;
  BeginAnswer(head, length);
  if (!to_head_ && !HasNoBody(head.status)) {
    file_ = std::move(fd);
    file_at_ = offset;
    file_left_ = length;
  }
  answer_whole_ = true;
  Pump();
}

void HttpConnection::AnswerPieces(const Exchange* exchange, Response head, uint64_t length,
                                  Responder::NextPiece next) {
  if (exchange != exchange_.get() || state_ != State::kAnswer || answer_begun_) return;
  BeginAnswer(head, length);
  if (!to_head_ && !HasNoBody(head.status)) {
    next_piece_ = std::move(next);
    pieces_left_ = length;
    // A small answer is sent in one write with its head.
    if (length <= kCopiedBody && length > 0 && OpenNextPiece() && pieces_left_ == 0) {
      const size_t head_size = out_.size();
      out_.resize(head_size + file_left_);
      const ssize_t got =
          ::pread(file_.get(), out_.data() + head_size, file_left_, static_cast<off_t>(file_at_));
      const auto read = static_cast<size_t>(std::max<ssize_t>(got, 0));
      out_.resize(head_size + read);
      file_at_ += read;
      file_left_ -= read;
    }
  }
  answer_whole_ = true;
  Pump();
}

void HttpConnection::BeginStream(const Exchange* exchange, Response head) {
  if (exchange != exchange_.get() || state_ != State::kAnswer || answer_begun_) return;
  BeginAnswer(head, std::nullopt);
  exchange_->streaming = true;
  exchange_->stream_open = true;
  if (to_head_ || HasNoBody(head.status)) {
    exchange_->stream_open = false;
    answer_whole_ = true;
  }
  PumpSoon();
}

void HttpConnection::StreamWrite(std::string_view bytes) {
  if (bytes.empty()) return;  // an empty chunk would end the body
  if (backlog() == 0) SetDeadline(host_->options.write_timeout);
  if (chunked_) {
    char size[24];
    const int digits = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    out_.append(size, static_cast<size_t>(digits));
  }
  out_ += bytes;
  if (chunked_) out_ += "\r\n";
  FlushSoon();
}

void HttpConnection::StreamEnd() {
  if (backlog() == 0) SetDeadline(host_->options.write_timeout);
  if (chunked_) out_ += "0\r\n\r\n";
  answer_whole_ = true;
  FlushSoon();
}

void HttpConnection::FlushSoon() {
  if (!waiting_write_) PumpSoon();
}

bool HttpConnection::OpenNextPiece() {
  auto piece = next_piece_();
  if (!piece || piece->length == 0 || piece->length > pieces_left_) {
    Kill();  // a promised length cannot be taken back: cut the connection
    return false;
  }
  file_ = std::move(piece->fd);
  file_at_ = piece->offset;
  file_left_ = piece->length;
  pieces_left_ -= piece->length;
  return true;
}

bool HttpConnection::SendsFiles() const { return file_left_ > 0 && transport_->can_send_files(); }

bool HttpConnection::RefillFromFile() {
  if (file_left_ == 0 && (pieces_left_ == 0 || !OpenNextPiece())) return false;
  if (SendsFiles()) return true;
  auto& scratch = host_->scratch;
  const size_t want = std::min<uint64_t>(scratch.size(), file_left_);
  const ssize_t got = ::pread(file_.get(), scratch.data(), want, static_cast<off_t>(file_at_));
  if (got <= 0) {
    Kill();
    return false;
  }
  out_.assign(scratch.data(), static_cast<size_t>(got));
  out_at_ = 0;
  file_at_ += static_cast<uint64_t>(got);
  file_left_ -= static_cast<uint64_t>(got);
  return true;
}

bool HttpConnection::Flush() {
  if (waiting_write_) return false;
  for (;;) {
    const bool from_out = out_at_ < out_.size();
    std::string& buffer = from_out ? out_ : body_;
    size_t& at = from_out ? out_at_ : body_at_;
    const bool buffered = at < buffer.size();
    if (!buffered) {
      out_.clear();
      out_at_ = 0;
      if (!RefillFromFile()) break;
      if (!SendsFiles()) continue;
    }
    if (turns_-- <= 0) {
      PumpSoon();
      return false;
    }
    // If a file follows, sending the head alone would wake the client for nothing.
    const bool file_next =
        from_out && body_.empty() && file_left_ + pieces_left_ > 0 && transport_->can_send_files();
    const auto outcome =
        buffered ? transport_->Write(std::string_view(buffer).substr(at, kWritePiece), file_next)
                 : transport_->SendFile(file_.get(), file_at_,
                                        std::min<uint64_t>(file_left_, kFilePiece));
    if (outcome.io == Transport::Io::kDone) {
      if (buffered) {
        at += outcome.bytes;
      } else if (outcome.bytes == 0) {
        Kill();  // shorter than promised
        return false;
      } else {
        file_at_ += outcome.bytes;
        file_left_ -= outcome.bytes;
      }
      SetDeadline(host_->options.write_timeout);
      // A stream's queue may never become empty; free what was sent from time to time.
      if (from_out && out_at_ > (1 << 20) && out_at_ > out_.size() / 2) {
        out_.erase(0, out_at_);
        out_at_ = 0;
      }
      continue;
    }
    if (outcome.io == Transport::Io::kWantWrite) {
      WaitWritable();
    } else if (outcome.io == Transport::Io::kWantRead) {
      WaitReadable();
    } else {
      Kill();
    }
    return false;
  }
  if (state_ == State::kDead) return false;
  std::string().swap(body_);
  body_at_ = 0;
  return true;
}

bool HttpConnection::StepAnswer() {
  const bool flushed = Flush();
  if (state_ == State::kDead) return false;
  if (flushed && answer_whole_) {
    EndAnswer();
    return true;
  }
  if (flushed) {
    // Nothing to send: the producer may take as long as it likes.
    deadline_ = TimePoint::max();
    if (out_.capacity() > kReadAhead) std::string().swap(out_);
    if (exchange_->on_drained) {
      host_->loop.Post(std::exchange(exchange_->on_drained, nullptr));
    }
  }
  // We keep reading to notice a hang-up while the answer is not ready.
  if (peer_ended_ || in_.size() >= kReadAhead) return false;
  switch (Fill()) {
    case Filled::kSome:
      return true;
    case Filled::kWait:
      return false;
    case Filled::kEnd:
      if (state_ == State::kDead) return false;
      // A client may close its sending side and still want its answer. But we would never notice
      // that the reader of an endless stream has gone, so a stream ends here.
      if (exchange_->streaming && !answer_whole_) Kill();
      return false;
  }
  return false;
}

void HttpConnection::EndAnswer() {
  const auto exchange = std::move(exchange_);
  EndExchange(*exchange);
  file_.reset();
  file_left_ = pieces_left_ = 0;
  next_piece_ = nullptr;
  parser_.reset();
  policy_.reset();
  spool_error_.clear();
  answer_begun_ = answer_whole_ = chunked_ = to_head_ = to_http10_ = false;
  if (close_after_) {
    if (peer_ended_) return Kill();
    // Closing with unread input makes the kernel reset the connection, which can lose the answer:
    // close our side, then read until the client closes its own.
    transport_->EndWrites();
    Release(in_);
    state_ = State::kDrain;
    SetDeadline(kDrainTime);
    return;
  }
  state_ = State::kHead;
  SetDeadline(host_->options.idle_timeout);
}

bool HttpConnection::StepDrain() {
  switch (Fill()) {
    case Filled::kSome:
      in_.clear();
      return true;
    case Filled::kWait:
      return false;
    case Filled::kEnd:
      Kill();
      return false;
  }
  return false;
}

}  // namespace athanor
