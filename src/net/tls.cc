#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/certificate.h"
#include "net/transport.h"

namespace athanor {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

int FdOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

// OpenSSL's own socket BIO uses write(2), which raises SIGPIPE when the peer is gone; ignoring that
// signal for the process would be inherited by the jobs it starts.
int BioWrite(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t put = ::send(FdOf(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(put);
}

int BioRead(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(FdOf(bio), bytes, static_cast<size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* SocketBioMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

// What OpenSSL is told when a pinned server has another key.
constexpr int kAnotherKey = X509_V_ERR_APPLICATION_VERIFICATION;
// Digits by which people tell two keys apart.
constexpr size_t kShownOfPin = 12;

class TlsTransport final : public Transport {
 public:
  enum class Role { kServer, kNamed, kPinned };
  // kNamed: the server must be `server_name`; kPinned: its key is checked by the context.
  TlsTransport(SSL_CTX* context, int fd, Role role, const std::string& server_name = {})
      : ssl_(SSL_new(context)), fd_(fd) {
    BIO* bio = BIO_new(SocketBioMethod());
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    switch (role) {
      case Role::kServer:
        SSL_set_accept_state(ssl_.get());
        break;
      case Role::kNamed:
        Expect(server_name);
        break;
      case Role::kPinned:
        SSL_set_connect_state(ssl_.get());
        SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
        SSL_set_app_data(ssl_.get(), &difference_);
        break;
    }
  }

  Outcome Handshake() override {
    ERR_clear_error();
    return Translate(SSL_do_handshake(ssl_.get()), 0);
  }
  bool pending() const override { return SSL_pending(ssl_.get()) > 0; }
  std::string why() const override { return why_; }
  bool is_stranger() const override { return stranger_; }

  Outcome Read(char* buffer, size_t size) override {
    ERR_clear_error();
    size_t got = 0;
    const int returned = SSL_read_ex(ssl_.get(), buffer, size, &got);
    return Translate(returned, got);
  }

  Outcome Write(std::string_view bytes, bool) override {
    ERR_clear_error();
    size_t put = 0;
    const int returned = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put);
    return Translate(returned, put);
  }

  Outcome SendFile(int, uint64_t, size_t) override { return {Io::kError, 0}; }
  bool can_send_files() const override { return false; }

  void EndWrites() override {
    ERR_clear_error();
    if (!broken_) SSL_shutdown(ssl_.get());
    ::shutdown(fd_, SHUT_WR);
  }

  bool is_tls() const override { return true; }

 private:
  // As a client: whose certificate it must be. It must be set before the handshake, or it is never
  // checked; so a failure to set it breaks the connection.
  void Expect(const std::string& host) {
    SSL_set_connect_state(ssl_.get());
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl_.get());
    unsigned char address[16];
    const bool is_address = ::inet_pton(AF_INET, host.c_str(), address) == 1 ||
                            ::inet_pton(AF_INET6, host.c_str(), address) == 1;
    bool set = false;
    if (is_address) {
      set = X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1;
    } else {
      X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
      set = X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size()) == 1 &&
            SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
    }
    if (!set) SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 0; });
  }

  Outcome Translate(int returned, size_t bytes) {
    if (returned == 1) return {Io::kDone, bytes};
    switch (SSL_get_error(ssl_.get(), returned)) {
      case SSL_ERROR_WANT_READ:
        return {Io::kWantRead, 0};
      case SSL_ERROR_WANT_WRITE:
        return {Io::kWantWrite, 0};
      case SSL_ERROR_ZERO_RETURN:
        return {Io::kEof, 0};
      default:
        broken_ = true;  // SSL_shutdown must not follow a fatal error
        Explain();
        return {Io::kError, 0};
    }
  }

  void Explain() {
    const long verified = SSL_get_verify_result(ssl_.get());
    if (verified == kAnotherKey) {
      stranger_ = true;
      why_ = "its certificate has another key than the one that was expected" + difference_;
    } else if (verified != X509_V_OK) {
      why_ = std::string("its certificate was refused: ") + X509_verify_cert_error_string(verified);
    } else if (const unsigned long code = ERR_peek_error()) {
      const char* reason = ERR_reason_error_string(code);
      why_ = std::string("TLS: ") + (reason ? reason : "unknown error");
    }
  }

  std::unique_ptr<SSL, FreeSsl> ssl_;
  int fd_;
  bool broken_ = false;
  bool stranger_ = false;
  std::string difference_;  // of a pinned server's key and the pin
  std::string why_;
};

// TLS 1.2 only; 1.3 has no others. Someone who gets the server's key later cannot read traffic that
// was recorded before. As a client we also accept what older servers offer.
constexpr char kServerCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr char kClientCiphers[] = "DEFAULT:!kRSA:!PSK:!SRP";

// Where systems store their authorities, besides the paths that OpenSSL was built with.
constexpr const char* kBundles[] = {"/etc/ssl/certs/ca-certificates.crt",
                                    "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                    "/etc/ssl/cert.pem"};

void UseAuthorities(SSL_CTX* context) {
  SSL_CTX_set_default_verify_paths(context);  // SSL_CERT_FILE and SSL_CERT_DIR, or its own
  if (std::getenv(X509_get_default_cert_file_env()) ||
      std::getenv(X509_get_default_cert_dir_env())) {
    return;
  }
  if (::access(X509_get_default_cert_dir(), R_OK) == 0) return;
  for (const char* bundle : kBundles) {
    if (SSL_CTX_load_verify_file(context, bundle) == 1) break;
  }
  ERR_clear_error();
}

// A client's context, and the pin that its callback compares with.
struct PinnedContext {
  std::unique_ptr<SSL_CTX, FreeContext> context;
  std::string pin;
};

// Instead of everything that OpenSSL checks of a certificate. That the server has the private key
// to it is checked by the handshake.
int HasPinnedKey(X509_STORE_CTX* store, void* pinned) {
  const X509* shown = X509_STORE_CTX_get0_cert(store);
  const std::string& expected = static_cast<const PinnedContext*>(pinned)->pin;
  const std::string pin = shown ? PinOf(shown) : "";
  if (!pin.empty() && pin == expected) return 1;
  const auto* ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (auto* difference = ssl ? static_cast<std::string*>(SSL_get_app_data(ssl)) : nullptr) {
    *difference =
        ": " + pin.substr(0, kShownOfPin) + "… instead of " + expected.substr(0, kShownOfPin) + "…";
  }
  X509_STORE_CTX_set_error(store, kAnotherKey);
  return 0;
}

tl::unexpected<Error> FailTls(const std::string& what) {
  char text[256] = "unknown error";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return Fail(Error{ErrorCode::kInvalid, what,
                    "give a PEM certificate chain and the PEM private key that belongs to it"}
                  .Why(text));
}

Result<std::unique_ptr<SSL_CTX, FreeContext>> NewClientContext() {
  std::unique_ptr<SSL_CTX, FreeContext> context(SSL_CTX_new(TLS_client_method()));
  if (!context) return FailTls("cannot set up TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_set_cipher_list(context.get(), kClientCiphers) != 1)
    return FailTls("cannot set up TLS");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

}  // namespace

Result<TransportFactory> MakeTlsClientTransports(const std::string& host) {
  ATHANOR_TRY(auto made, NewClientContext());
  std::shared_ptr<SSL_CTX> context = std::move(made);
  UseAuthorities(context.get());
  return TransportFactory([context, host](int fd) -> std::unique_ptr<Transport> {
    return std::make_unique<TlsTransport>(context.get(), fd, TlsTransport::Role::kNamed, host);
  });
}

Result<TransportFactory> MakePinnedClientTransports(const std::string& pin) {
  ATHANOR_TRY(auto made, NewClientContext());
  // Shared by the factory's copies and the connections made from it.
  const std::shared_ptr<PinnedContext> pinned(new PinnedContext{std::move(made), pin});
  SSL_CTX_set_cert_verify_callback(pinned->context.get(), HasPinnedKey, pinned.get());
  return TransportFactory([pinned](int fd) -> std::unique_ptr<Transport> {
    return std::make_unique<TlsTransport>(pinned->context.get(), fd, TlsTransport::Role::kPinned);
  });
}

Result<TransportFactory> MakeTlsTransports(const std::string& cert_file,
                                           const std::string& key_file) {
  // Shared by the factory's copies and the connections made from it.
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), FreeContext());
  if (!context) return FailTls("cannot set up TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_set_cipher_list(context.get(), kServerCiphers) != 1)
    return FailTls("cannot set up TLS");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Released buffers make idle TLS connections small; partial writes keep one large body from
  // blocking the loop in one call.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context.get(), cert_file.c_str()) != 1) {
    return FailTls("cannot use the certificate " + cert_file);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return FailTls("cannot use the private key " + key_file);
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    return FailTls("the private key " + key_file + " does not belong to " + cert_file);
  }
  return TransportFactory([context](int fd) -> std::unique_ptr<Transport> {
    return std::make_unique<TlsTransport>(context.get(), fd, TlsTransport::Role::kServer);
  });
}

}  // namespace athanor
