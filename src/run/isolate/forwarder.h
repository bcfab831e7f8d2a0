// A Forwarder lets the processes of another network namespace reach services of this machine's
// loopback at their usual address: it listens at 127.0.0.1 there, and passes each connection on to
// the same port here. Bytes go through the kernel only.
//
// It lives as long as its process: connections break when that ends, as they would with the service
// itself, and the next one listens at the same ports.
//
// Threads: its own.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

class Forwarder {
 public:
  // kConflict: a port is taken in that namespace.
  static Result<std::unique_ptr<Forwarder>> Start(int space_fd, const std::vector<uint16_t>& ports);
  ~Forwarder();

 private:
  struct Listener {
    uint16_t port = 0;
    UniqueFd fd;
  };
  // One direction of a connection: socket, pipe, socket.
  struct Flow {
    int from = -1;
    int to = -1;
    UniqueFd read;
    UniqueFd write;
    size_t held = 0;      // bytes in the pipe
    bool ended = false;   // nothing more comes
    bool passed = false;  // the end was passed on
  };
  struct Connection {
    UniqueFd near;
    UniqueFd far;
    Flow flows[2];
  };

  explicit Forwarder(std::vector<Listener> listeners);
  void Loop();
  void Accept(const Listener& listener);
  static bool Pump(Flow& flow);  // false: it broke
  static bool GoesOn(Connection& connection, short near, short far);

  std::vector<Listener> listeners_;
  UniqueFd wake_;
  std::list<Connection> connections_;
  std::thread thread_;
};

}  // namespace athanor
