#include <atomic>

#include "net/http/http_connection.h"
#include "net/http/http_server.h"

namespace athanor {

struct Responder::Handle {
  std::shared_ptr<Exchange> exchange;
  std::atomic<bool> answered{false};
  Finish finish;

  // Runs `task(connection)` on the loop, at once when this is its thread.
  template <class Task>
  static void OnLoop(const std::shared_ptr<Exchange>& exchange, Task task) {
    // Not `connection`, which the loop resets while other threads use this.
    if (exchange->over) return;
    if (exchange->loop.InLoopThread()) {
      if (const auto connection = exchange->connection.lock()) task(*connection);
      return;
    }
    // Tasks are std::functions, which copy; what is sent may only move.
    exchange->loop.Post([exchange, shared = std::make_shared<Task>(std::move(task))] {
      if (const auto connection = exchange->connection.lock()) (*shared)(*connection);
    });
  }

  ~Handle() {
    if (answered.exchange(true)) return;
    OnLoop(exchange, [exchange = exchange.get()](HttpConnection& connection) {
      connection.Answer(exchange,
                        ErrorResponse(500, Error{ErrorCode::kBug, "the request was not answered"}));
    });
  }
};

std::shared_ptr<Responder::Handle> Responder::HandleFor(std::shared_ptr<Exchange> exchange) {
  auto handle = std::make_shared<Handle>();
  handle->exchange = std::move(exchange);
  return handle;
}

void Responder::Send(Response response) const {
  if (handle_->answered.exchange(true)) return;
  auto send = [exchange = handle_->exchange](Response answer) {
    Handle::OnLoop(exchange, [raw = exchange.get(), answer = std::move(answer)](
                                 HttpConnection& c) mutable { c.Answer(raw, std::move(answer)); });
  };
  if (handle_->finish) return handle_->finish(std::move(response), std::move(send));
  send(std::move(response));
}

void Responder::SetFinish(Finish finish) const { handle_->finish = std::move(finish); }

void Responder::SendFile(Response head, UniqueFd fd, uint64_t offset, uint64_t length) const {
  if (handle_->answered.exchange(true)) return;
  Handle::OnLoop(handle_->exchange,
                 [exchange = handle_->exchange.get(), head = std::move(head), fd = std::move(fd),
                  offset, length](HttpConnection& c) mutable {
                   c.AnswerFile(exchange, std::move(head), std::move(fd), offset, length);
                 });
}

void Responder::SendPieces(Response head, uint64_t length, NextPiece next) const {
  if (handle_->answered.exchange(true)) return;
  Handle::OnLoop(handle_->exchange, [exchange = handle_->exchange.get(), head = std::move(head),
                                     length, next = std::move(next)](HttpConnection& c) mutable {
    c.AnswerPieces(exchange, std::move(head), length, std::move(next));
  });
}

bool Responder::answered() const { return handle_->answered; }

struct Stream::Handle {
  std::shared_ptr<Exchange> exchange;
  ~Handle() { Close(exchange); }

  static void Close(const std::shared_ptr<Exchange>& exchange) {
    Responder::Handle::OnLoop(exchange, [raw = exchange.get()](HttpConnection& connection) {
      if (!raw->stream_open) return;
      raw->stream_open = false;
      connection.StreamEnd();
    });
  }
};

Stream Responder::BeginStream(Response head) const {
  Stream stream;
  stream.handle_ = std::make_shared<Stream::Handle>();
  stream.handle_->exchange = handle_->exchange;
  if (handle_->answered.exchange(true)) {
    // Another answer was given: this stream refers to an exchange that is never open.
    stream.handle_->exchange = std::make_shared<Exchange>(handle_->exchange->loop);
    stream.handle_->exchange->over = true;
  } else if (const auto connection = handle_->exchange->connection.lock()) {
    connection->BeginStream(handle_->exchange.get(), std::move(head));
  }
  return stream;
}

bool Stream::Write(std::string_view bytes) {
  if (!open()) return false;
  const auto connection = handle_->exchange->connection.lock();
  if (!connection) return false;
  connection->StreamWrite(bytes);
  return true;
}

void Stream::Close() {
  if (handle_) Handle::Close(handle_->exchange);
}

void Stream::Abort() {
  if (!handle_) return;
  Responder::Handle::OnLoop(handle_->exchange,
                            [](HttpConnection& connection) { connection.Kill(); });
}

bool Stream::open() const { return handle_ && handle_->exchange->stream_open; }

size_t Stream::backlog() const {
  if (!handle_) return 0;
  const auto connection = handle_->exchange->connection.lock();
  return connection ? connection->backlog() : 0;
}

void Stream::OnClosed(std::function<void()> task) {
  if (!handle_) return;
  Exchange& exchange = *handle_->exchange;
  if (exchange.connection.expired()) return exchange.loop.Post(std::move(task));
  exchange.on_closed = std::move(task);
}

void Stream::OnDrained(std::function<void()> task) {
  if (!handle_) return;
  Exchange& exchange = *handle_->exchange;
  const auto connection = exchange.connection.lock();
  if (!connection || !exchange.stream_open) return;
  exchange.on_drained = std::move(task);
  connection->FlushSoon();
}

}  // namespace athanor
