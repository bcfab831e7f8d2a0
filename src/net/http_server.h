// An HTTP/1.1 server on one Loop: Unix sockets, TCP and TLS; keep-alive,
// pipelining in order, streamed answers. It knows no routes (net/router.h) and
// no permissions; it tells the handler who is at the other end.
//
// Threads: everything is called, and calls back, on the loop's thread, except
// that a Responder may also answer from, and be dropped by, any other.
// Ownership: the Loop outlives the server, and threads that answer end before it;
// a Responder or Stream that is left over may be dropped at any time. After Stop()
// no handler is called, only the OnClosed tasks of streams that it cut.
// Memory: an idle connection costs a few hundred bytes in this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http_types.h"
#include "net/loop.h"

namespace athanor {

class Exchange;

// A response body written piece by piece (server-sent events, growing logs).
// Copies name the same stream, so that a producer and its registry can both hold
// it; when the last one is dropped the stream is closed as by Close().
class Stream {
 public:
  Stream() = default;
  // Queues `bytes`; they leave in order when the loop turns. False, and nothing
  // queued, once the stream is closed from either side.
  bool Write(std::string_view bytes);
  void Close();  // ends the body properly, after what is queued
  void Abort();  // cuts the connection: for readers that are too slow
  bool open() const;
  size_t backlog() const;  // bytes queued and not yet taken by the kernel
  // Runs once when the stream ends from either side, not within Write or Close.
  void OnClosed(std::function<void()> task);
  // Runs once when the backlog is empty the next time, or soon if it is now.
  void OnDrained(std::function<void()> task);

 private:
  friend class Responder;
  struct Handle;
  std::shared_ptr<Handle> handle_;
};

// The right to answer one request, once; later answers are ignored. Copies are
// cheap and share that right, since callbacks are std::functions, which copy.
// When the last copy is dropped unanswered, the client gets a 500.
class Responder {
 public:
  void Send(Response response) const;
  // Sends `length` bytes of `fd` from `offset`, read in pieces as the client
  // takes them. A file that turns out shorter cuts the connection, so that the
  // client notices. Content-Length is set; other headers come from `head`.
  void SendFile(Response head, UniqueFd fd, uint64_t offset, uint64_t length) const;
  // The same with several files: `length` bytes in all, each piece asked for when the one
  // before has left, on the loop's thread. None when some are still due: the connection
  // is cut.
  using NextPiece = std::function<std::optional<FileRange>()>;
  void SendPieces(Response head, uint64_t length, NextPiece next) const;
  // On the loop's thread only. Never null; already closed if the client is gone
  // or an answer was given.
  Stream BeginStream(Response head) const;
  bool answered() const;
  // From now on what Send is given goes through `finish`, on the thread that called Send; it passes
  // the answer on with `send`, once, from any thread. To be set before anybody else has the Responder.
  using Finish = std::function<void(Response response, std::function<void(Response)> send)>;
  void SetFinish(Finish finish) const;

 private:
  friend class HttpConnection;
  friend class Stream;
  struct Handle;
  Responder() = default;
  static std::shared_ptr<Handle> HandleFor(std::shared_ptr<Exchange> exchange);
  std::shared_ptr<Handle> handle_;
};

// How a request's body is to be taken; asked when its headers are in.
struct BodyPolicy {
  uint64_t max_bytes = 1 << 20;    // more is answered 413
  UniqueFd spool;                  // set: written there, else kept in memory
  std::shared_ptr<BodySink> sink;  // set: given to it instead of either
  std::optional<Response> refuse;  // set: sent at once, the body is not read
};

struct HttpServerOptions {
  size_t max_head_bytes = 64 << 10;                 // 431 beyond
  // Places. When they run out, a connection on which no request has come is closed, then one
  // between two requests, of whoever has most; else the newcomer gets a 503.
  size_t max_connections = 4096;
  size_t unix_places = 256;     // of them, that TCP cannot take
  size_t max_per_peer = 2048;   // of one user or address over TCP
  std::chrono::milliseconds idle_timeout{120'000};  // between requests
  std::chrono::milliseconds head_timeout{20'000};   // first byte to end of headers
  // A body may take this long plus its bytes at `min_body_rate` a second.
  std::chrono::milliseconds body_timeout{30'000};
  uint64_t min_body_rate = 1024;
  std::chrono::milliseconds write_timeout{60'000};  // without the client taking a byte
};

class HttpServer {
 public:
  using Handler = std::function<void(Request request, Responder responder)>;
  // `head` has everything but body and body_size.
  using BodyPolicyFor = std::function<BodyPolicy(const Request& head)>;

  HttpServer(Loop& loop, Handler handler, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void SetBodyPolicy(BodyPolicyFor policy);

  // Looks more closely at who sent a request, before anybody else sees it. False: that need not
  // be known for this one. True: `done` is called on the loop's thread, within the call or later,
  // and what it is told holds for the connection (Peer::acts_for_uid). Not asked again then.
  using PeerJudge =
      std::function<bool(const Request& head, std::function<void(bool acts_for_uid)> done)>;
  void SetPeerJudge(PeerJudge judge);

  // Each may be called several times, before or while the loop runs.
  // Removes a stale socket at `path` only when nobody answers there; kConflict
  // when somebody does, or when `path` is something else. Removed by Stop().
  Status ListenUnix(const std::string& path, mode_t mode = 0600);
  // A literal address ("127.0.0.1", "::1", "::"); port 0 lets the kernel choose.
  // Returns the bound port; kConflict when it is taken.
  Result<uint16_t> ListenTcp(const std::string& address, uint16_t port);
  // The same with TLS 1.2 or later; PEM files, read once.
  Result<uint16_t> ListenTls(const std::string& address, uint16_t port,
                             const std::string& cert_file, const std::string& key_file);

  void StopListening();  // open connections go on
  void Stop();           // closes all; idempotent
  size_t connections() const;

 private:
  struct Impl;
  // Shared with connections, which may outlive the server by a queued task.
  std::shared_ptr<Impl> impl_;
};

}  // namespace athanor
