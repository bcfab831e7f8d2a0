// One accepted connection of an HttpServer. It reads a request, passes it to the handler, writes
// the answer, and repeats. Private to the server.
//
// It is a state machine with one entry point, Pump(), which continues until nothing more can be
// done at once. Every event (readable, writable, an answer) only calls it. So nothing re-enters: an
// answer given within the handler is picked up after the handler has returned.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/http_server.h"
#include "net/http/request_parser.h"
#include "net/peer.h"
#include "net/peer_places.h"
#include "net/transport.h"

namespace athanor {

class HttpConnection;
using ConnectionList = std::list<std::shared_ptr<HttpConnection>>;

// What all connections of a server share.
struct ConnectionHost {
  Loop& loop;
  HttpServerOptions options;
  HttpServer::Handler handler;
  HttpServer::BodyPolicyFor body_policy;
  HttpServer::PeerJudge peer_judge;
  PeerLookup peers;
  PeerPlaces places;
  ConnectionList connections;
  // One buffer for all: its bytes are consumed before the next connection's turn.
  std::array<char, 64 << 10> scratch;
};

// A pending answer: it connects a Responder or Stream, which may live on, and the connection, which
// may be gone. Used on the loop's thread, except for `loop` and `over`; once over, `loop` may be
// gone as well.
class Exchange {
 public:
  Loop& loop;
  std::atomic<bool> over{false};
  std::weak_ptr<HttpConnection> connection;
  bool streaming = false;
  bool stream_open = false;
  std::function<void()> on_closed;
  std::function<void()> on_drained;

  explicit Exchange(Loop& the_loop) : loop(the_loop) {}
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  HttpConnection(std::shared_ptr<ConnectionHost> host, UniqueFd fd, Peer peer,
                 std::unique_ptr<Transport> transport, std::unique_ptr<FdWatch> watch);
  ~HttpConnection();

  void Start(ConnectionList::iterator place);
  // Ends it at once; the host removes it.
  void Kill();
  bool idle() const;      // between two requests, or before the first
  bool headless() const;  // no request has arrived yet, or only part of a head
  const PeerPlaces::Holder& holder() const { return holder_; }
  void CheckDeadline(TimePoint now);

  // The answer to the current exchange; ignored if `exchange` is another one.
  void Answer(const Exchange* exchange, Response response);
  void AnswerFile(const Exchange* exchange, Response head, UniqueFd fd, uint64_t offset,
                  uint64_t length);
  void AnswerPieces(const Exchange* exchange, Response head, uint64_t length,
                    Responder::NextPiece next);
  void BeginStream(const Exchange* exchange, Response head);
  void StreamWrite(std::string_view bytes);
  void StreamEnd();
  void FlushSoon();
  size_t backlog() const { return out_.size() - out_at_ + body_.size() - body_at_; }

 private:
  enum class State { kHead, kPeer, kBody, kAnswer, kDrain, kDead };
  enum class Filled { kSome, kWait, kEnd };

  void Pump();
  bool Step();
  bool StepHead();
  bool StepBody();
  bool StepAnswer();
  bool StepDrain();
  Filled Fill();
  bool Flush();  // false: must wait, or died
  bool RefillFromFile();
  bool OpenNextPiece();
  bool SendsFiles() const;
  void HeadDone();
  bool PeerJudged();  // false: must wait
  void TakeRequest();
  bool TakeBody();
  void SpoolBody(std::string_view bytes);
  void CallHandler();
  void BeginAnswer(Response& head, std::optional<uint64_t> length);
  void EndAnswer();
  void Refuse(int status, ErrorCode code, std::string what);
  void WaitReadable();
  void WaitWritable();
  void PumpSoon();
  void SetDeadline(std::chrono::milliseconds from_now);

  std::shared_ptr<ConnectionHost> host_;
  UniqueFd fd_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<FdWatch> watch_;
  Peer peer_;
  PeerPlaces::Holder& holder_;  // released by Kill
  ConnectionList::iterator place_;
  State state_ = State::kHead;
  TimePoint deadline_ = TimePoint::max();
  TimePoint body_start_;

  bool pumping_ = false;
  bool pump_again_ = false;
  bool pump_posted_ = false;
  bool waiting_read_ = false;
  bool drained_ = false;  // the last read took everything there was
  bool waiting_write_ = false;
  bool peer_ended_ = false;  // it sends no more, but may still be reading
  bool close_after_ = false;
  bool answer_begun_ = false;
  bool answer_whole_ = false;  // nothing will be added to it
  bool chunked_ = false;
  bool to_head_ = false;  // the request is a HEAD: no body in the answer
  bool to_http10_ = false;
  bool had_request_ = false;
  int turns_ = 0;  // reads and writes left in this Pump

  std::string in_;
  std::string out_;  // head, framing, small bodies, stream
  size_t out_at_ = 0;
  std::string body_;  // a large body, sent after out_ without a copy
  size_t body_at_ = 0;
  UniqueFd file_;
  uint64_t file_at_ = 0;
  uint64_t file_left_ = 0;    // of this piece
  uint64_t pieces_left_ = 0;  // bytes of those after it
  Responder::NextPiece next_piece_;

  std::unique_ptr<RequestParser> parser_;
  std::unique_ptr<BodyPolicy> policy_;
  std::string spool_error_;
  std::shared_ptr<Exchange> exchange_;  // shared with the Responder of the request
};

}  // namespace athanor
