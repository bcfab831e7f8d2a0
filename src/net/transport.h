// Bytes in and out of a connected, non-blocking socket: plain or TLS. A call does what is possible
// at once and returns what to wait for. Owned by one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

class Transport {
 public:
  enum class Io { kDone, kEof, kWantRead, kWantWrite, kError };
  struct Outcome {
    Io io = Io::kError;
    size_t bytes = 0;      // with kDone: at least 1
    bool drained = false;  // of a Read: the socket has no more for now
  };

  virtual ~Transport() = default;
  virtual Outcome Read(char* buffer, size_t size) = 0;
  // After kWant… the next call must begin with the same bytes. `more` follows at once: these bytes
  // may wait for it, to be sent together.
  virtual Outcome Write(std::string_view bytes, bool more = false) = 0;
  // Bytes of a file, without a copy through this process; kDone with 0 bytes at the end of
  // the file. Only where can_send_files().
  virtual Outcome SendFile(int file, uint64_t offset, size_t size) = 0;
  virtual bool can_send_files() const = 0;
  virtual void EndWrites() = 0;  // tells the peer that nothing more follows; best effort
  virtual bool is_tls() const = 0;
  // What a client must do before it sends its first byte: kDone with 0 bytes, kWant… or kError,
  // which why() explains.
  virtual Outcome Handshake() { return {Io::kDone, 0}; }
  // Bytes were read from the socket that no Read has returned yet: poll() would not report them.
  virtual bool pending() const { return false; }
  virtual std::string why() const { return {}; }
  // Whoever answered is not the server that was expected, so asking again does not help.
  virtual bool is_stranger() const { return false; }
};

// Neither owns `fd`.
std::unique_ptr<Transport> MakePlainTransport(int fd);
using TransportFactory = std::function<std::unique_ptr<Transport>(int fd)>;
// Reads the PEM files now; kInvalid if they do not match. TLS 1.2 or later.
Result<TransportFactory> MakeTlsTransports(const std::string& cert_file,
                                           const std::string& key_file);
// For clients: the server's certificate must be valid for `host` (a name or an address) and lead
// to an authority of SSL_CERT_FILE, SSL_CERT_DIR or the system. TLS 1.2 or later.
Result<TransportFactory> MakeTlsClientTransports(const std::string& host);
// The same for a server that is known by its key alone: the public key of its certificate must have
// this sha256 (PinOf in net/certificate.h). Its name, its dates and who signed it do not matter.
// why() of a stranger has the first digits of both keys.
Result<TransportFactory> MakePinnedClientTransports(const std::string& pin);

}  // namespace athanor
