// An HTTP/1.1 server on one Loop: Unix sockets, TCP and TLS; keep-alive, pipelining in order,
// streamed answers. It knows no routes (net/http/router.h) and no permissions; it tells the handler
// who is connected.
//
// Threads: everything is called, and calls back, on the loop's thread, except that a Responder may
// also answer from, and be dropped by, any other. Ownership: the Loop outlives the server, and
// threads that answer end before the Loop does; remaining Responders and Streams may be dropped at
// any time. After Stop() no handler is called, only the OnClosed tasks of streams that it cut.
// Memory: an idle connection costs a few hundred bytes in this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http/http_types.h"
#include "net/loop.h"

namespace athanor {

class Exchange;

// A response body written piece by piece (server-sent events, growing logs). Copies refer to the
// same stream, so that a producer and its registry can both hold it. When the last copy is dropped,
// the stream is closed as by Close().
class Stream {
 public:
  Stream() = default;
  // Queues `bytes`; they are sent in order by the loop. False, and nothing queued, once the stream
  // is closed from either side.
  bool Write(std::string_view bytes);
  void Close();  // ends the body properly, after the queued bytes
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

// The right to answer one request, once; later answers are ignored. Copies are cheap and share that
// right, because callbacks are std::functions, which are copied. If the last copy is dropped
// without an answer, the client gets a 500.
class Responder {
 public:
  void Send(Response response) const;
  // Sends `length` bytes of `fd` from `offset`, read in pieces as the client takes them. If the
  // file turns out to be shorter, the connection is cut, so that the client notices. Content-Length
  // is set; other headers come from `head`.
  void SendFile(Response head, UniqueFd fd, uint64_t offset, uint64_t length) const;
  // The same with several files: `length` bytes in total. Each piece is requested on the loop's
  // thread when the one before has been sent. If none comes although bytes are still missing, the
  // connection is cut.
  using NextPiece = std::function<std::optional<FileRange>()>;
  void SendPieces(Response head, uint64_t length, NextPiece next) const;
  // On the loop's thread only. Never null; already closed if the client is gone
  // or an answer was given.
  Stream BeginStream(Response head) const;
  bool answered() const;
  // From now on, answers that are given to Send go through `finish`, on the thread that called
  // Send. It passes the answer on with `send`, once, from any thread. Set it before anything else
  // has the Responder.
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

// How the body of a request is received; asked when its headers have arrived.
struct BodyPolicy {
  uint64_t max_bytes = 1 << 20;    // more is answered 413
  UniqueFd spool;                  // set: written there; otherwise kept in memory
  std::shared_ptr<BodySink> sink;  // set: given to it instead of both
  std::optional<Response> refuse;  // set: sent at once, the body is not read
};

struct HttpServerOptions {
  size_t max_head_bytes = 64 << 10;  // 431 beyond
  // Limits on connections. When they run out, a connection without any request is closed, otherwise
  // one between two requests, of the peer with the most; otherwise the new one gets a 503.
  size_t max_connections = 4096;
  size_t unix_places = 256;    // of these, reserved: TCP cannot use them
  size_t max_per_peer = 2048;  // of one user or address over TCP
  // For callers of other machines: nobody counts as one of this machine, and the kernel is not
  // asked whose a connection is.
  bool for_elsewhere = false;
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
  // `head` has everything except body and body_size.
  using BodyPolicyFor = std::function<BodyPolicy(const Request& head)>;

  HttpServer(Loop& loop, Handler handler, HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void SetBodyPolicy(BodyPolicyFor policy);

  // Finds out more about who sent a request, before the handler sees it. False: it does not matter
  // for this request. True: `done` is called on the loop's thread, within the call or later, and
  // its argument applies to the connection (Peer::acts_for_uid), which is not asked about again.
  using PeerJudge =
      std::function<bool(const Request& head, std::function<void(bool acts_for_uid)> done)>;
  void SetPeerJudge(PeerJudge judge);

  // Each may be called several times, before or while the loop runs. Removes a stale socket at
  // `path` only if no server answers there; kConflict if one does, or if `path` is something else.
  // Removed by Stop().
  Status ListenUnix(const std::string& path, mode_t mode = 0600);
  // A literal address ("127.0.0.1", "::1", "::"); port 0 lets the kernel choose. Returns the bound
  // port; kConflict if it is taken.
  Result<uint16_t> ListenTcp(const std::string& address, uint16_t port);
  // The same with TLS 1.2 or later; PEM files, read once.
  Result<uint16_t> ListenTls(const std::string& address, uint16_t port,
                             const std::string& cert_file, const std::string& key_file);

  void StopListening();  // open connections continue
  void Stop();           // closes all; idempotent
  size_t connections() const;

 private:
  struct Impl;
  // Shared with connections, which may outlive the server by a queued task.
  std::shared_ptr<Impl> impl_;
};

}  // namespace athanor
