#include <gtest/gtest.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/address.h"
#include "net/http/http_client.h"
#include "net/http/http_server.h"
#include "net/test_server.h"

namespace athanor {
namespace {

using testing::BodyOf;
using testing::RawClient;
using testing::TempDir;
using testing::TestServer;

// A self-signed certificate and its key, as PEM files.
struct Identity {
  TempDir dir;
  std::string cert = dir / "cert.pem";
  std::string key = dir / "key.pem";

  explicit Identity(EVP_PKEY* pair = EVP_EC_gen("P-256")) {
    X509* made = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), 0);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, pair);
    X509_NAME* name = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(made, name);
    X509_sign(made, pair, EVP_sha256());
    FILE* file = std::fopen(cert.c_str(), "w");
    PEM_write_X509(file, made);
    std::fclose(file);
    file = std::fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(made);
    EVP_PKEY_free(pair);
  }
};

// A TLS client over a RawClient's socket.
class TlsClient {
 public:
  explicit TlsClient(uint16_t port, int max_version = TLS1_3_VERSION)
      : raw_(RawClient::Tcp(port)), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_security_level(context_, 0);  // so that old versions can be offered at all
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_, max_version);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, raw_.fd());
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  void Offer(const char* ciphers) { ASSERT_EQ(SSL_set_cipher_list(ssl_, ciphers), 1) << ciphers; }
  bool Connect() { return SSL_connect(ssl_) == 1; }
  void Send(const std::string& bytes) {
    ASSERT_EQ(SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())),
              static_cast<int>(bytes.size()));
  }
  std::string ReadAll() {
    std::string all;
    char piece[16 << 10];
    for (;;) {
      const int got = SSL_read(ssl_, piece, sizeof piece);
      if (got <= 0) {
        clean_end_ = SSL_get_error(ssl_, got) == SSL_ERROR_ZERO_RETURN;
        return all;
      }
      all.append(piece, static_cast<size_t>(got));
    }
  }
  bool clean_end() const { return clean_end_; }

 private:
  RawClient raw_;
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  bool clean_end_ = false;
};

TEST(Tls, ServesRequestsLargeAnswersAndStreams) {
  const Identity identity;
  const std::string large(8 << 20, 'L');
  TestServer server([&large](Request request, Responder responder) {
    EXPECT_TRUE(request.peer.tls);
    if (request.raw_path == "/stream") {
      Stream stream = responder.BeginStream({});
      for (int i = 0; i < 100; ++i) stream.Write(std::string(10'000, 's'));
      return;
    }
    responder.Send(Response::Text(200, request.body.empty() ? large : request.body));
  });
  const auto port = server.OnLoop(
      [&] { return server.server().ListenTls("127.0.0.1", 0, identity.cert, identity.key); });
  ASSERT_TRUE(port);
  TlsClient one(*port);
  ASSERT_TRUE(one.Connect());
  one.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" +
           std::string(200'000, 'u'));
  one.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string both = one.ReadAll();
  EXPECT_TRUE(BodyOf(BodyOf(both)) == large);
  EXPECT_TRUE(one.clean_end());

  TlsClient two(*port, TLS1_2_VERSION);
  ASSERT_TRUE(two.Connect());
  two.Send("GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string body = BodyOf(two.ReadAll());
  EXPECT_EQ(std::count(body.begin(), body.end(), 's'), 1'000'000);
}

TEST(Tls, RefusesVersionsBefore12AndPlainClients) {
  const Identity identity;
  TestServer server([](Request, Responder responder) { responder.Send({}); });
  const auto port = server.OnLoop(
      [&] { return server.server().ListenTls("127.0.0.1", 0, identity.cert, identity.key); });
  ASSERT_TRUE(port);
  TlsClient old(*port, TLS1_1_VERSION);
  EXPECT_FALSE(old.Connect());
  auto plain = RawClient::Tcp(*port);
  plain.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.ReadAll().find("200 OK"), std::string::npos);
  server.Until([&] { return server.server().connections() <= 1; });
}

// Red without the list of ciphers: OpenSSL's own has those whose session the server's key opens,
// which need an RSA certificate.
TEST(Tls, TakesOnlyCiphersThatKeepAnOldRecordingClosed) {
  const Identity identity(EVP_RSA_gen(2048));
  TestServer server(
      [](Request, Responder responder) { responder.Send(Response::Text(200, "ok")); });
  const auto port = server.OnLoop(
      [&] { return server.server().ListenTls("127.0.0.1", 0, identity.cert, identity.key); });
  ASSERT_TRUE(port);
  for (const char* closed : {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384",
                             "ECDHE-RSA-CHACHA20-POLY1305"}) {
    TlsClient client(*port, TLS1_2_VERSION);
    client.Offer(closed);
    EXPECT_TRUE(client.Connect()) << closed;
  }
  for (const char* open :
       {"AES128-SHA", "AES256-SHA", "AES128-SHA256", "AES128-GCM-SHA256", "AES256-GCM-SHA384"}) {
    TlsClient client(*port, TLS1_2_VERSION);
    client.Offer(open);
    EXPECT_FALSE(client.Connect()) << open;
  }
  ERR_clear_error();
}

// Trusts one certificate, as a user does with SSL_CERT_FILE.
class Trust {
 public:
  explicit Trust(const std::string& file) { ::setenv("SSL_CERT_FILE", file.c_str(), 1); }
  ~Trust() { ::unsetenv("SSL_CERT_FILE"); }
};

TEST(TlsClient, TalksToAServerItTrustsOverOneConnection) {
  const Identity identity;
  const Trust trust(identity.cert);
  const std::string large(4 << 20, 'L');
  TestServer server([&large](Request request, Responder responder) {
    responder.Send(Response::Text(200, request.body.empty() ? large : request.body));
  });
  const auto port = server.OnLoop(
      [&] { return server.server().ListenTls("127.0.0.1", 0, identity.cert, identity.key); });
  ASSERT_TRUE(port);
  HttpClient client(Endpoint{"", "localhost", *port, true});
  for (int round = 0; round < 3; ++round) {
    const auto reply = client.Get("/");
    ASSERT_TRUE(reply) << reply.error().what << ": " << reply.error().why;
    EXPECT_TRUE(reply->body == large);
    const auto echo = client.PostJson("/", std::string(300'000, 'u'));
    ASSERT_TRUE(echo) << echo.error().why;
    EXPECT_EQ(echo->body.size(), 300'000u);
    EXPECT_EQ(server.OnLoop([&] { return server.server().connections(); }), 1u);
  }
}

TEST(TlsClient, RefusesAnUnknownAuthorityAndAnotherName) {
  const Identity identity;
  const Identity stranger;
  int served = 0;
  TestServer server([&served](Request, Responder responder) {
    ++served;
    responder.Send({});
  });
  const auto port = server.OnLoop(
      [&] { return server.server().ListenTls("127.0.0.1", 0, identity.cert, identity.key); });
  ASSERT_TRUE(port);
  {
    const Trust trust(stranger.cert);
    const auto reply = HttpClient(Endpoint{"", "localhost", *port, true}).Get("/");
    ASSERT_FALSE(reply);
    EXPECT_NE(reply.error().why.find("certificate"), std::string::npos) << reply.error().why;
    EXPECT_FALSE(reply.error().hint.empty());
  }
  const Trust trust(identity.cert);
  const auto reply = HttpClient(Endpoint{"", "127.0.0.1", *port, true}).Get("/");
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().why.find("certificate"), std::string::npos) << reply.error().why;
  EXPECT_EQ(server.OnLoop([&] { return served; }), 0);
}

// Planted bug: keep the connection of a call that was cancelled before TLS was set up on it.
TEST(TlsClient, MayBeAskedAgainAfterACallThatGotNoConnection) {
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // accepts nobody
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(silent.get(), generic, size), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);
  ASSERT_EQ(::getsockname(silent.get(), generic, &size), 0);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd(ends[1]).reset();  // so that the other one is readable
  HttpClientOptions options;
  options.connect_timeout = std::chrono::milliseconds(30);
  HttpClient client(Endpoint{"", "127.0.0.1", ntohs(address.sin_port), true}, options);
  HttpCall call;
  for (const int cancel_fd : {read_end.get(), read_end.get(), -1, read_end.get(), -1}) {
    call.cancel_fd = cancel_fd;
    EXPECT_EQ(client.Do(call).error().code,
              cancel_fd < 0 ? ErrorCode::kTimeout : ErrorCode::kCancelled);
  }
}

TEST(TlsClient, SaysThatAPlainServerSpeaksNoTls) {
  TestServer server([](Request, Responder responder) { responder.Send({}); });
  const auto reply = HttpClient(Endpoint{"", "127.0.0.1", server.port(), true}).Get("/");
  ASSERT_FALSE(reply);
  EXPECT_FALSE(reply.error().why.empty());
}

TEST(HttpClient, ConnectsOnlyToTheAddressThatWasAllowed) {
  int served = 0;
  TestServer server([&served](Request, Responder responder) {
    ++served;
    responder.Send({});
  });
  HttpClientOptions options;
  std::vector<std::string> asked;
  options.allow = [&asked](const sockaddr& address) {
    asked.push_back(AddressText(address));
    return false;
  };
  const auto refused = HttpClient(Endpoint{"", "127.0.0.1", server.port()}, options).Get("/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDenied);
  EXPECT_EQ(asked, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(server.OnLoop([&] { return served; }), 0);
  options.allow = [](const sockaddr& address) { return AddressText(address) == "127.0.0.1"; };
  EXPECT_TRUE(HttpClient(Endpoint{"", "127.0.0.1", server.port()}, options).Get("/"));
}

TEST(Tls, SaysWhatIsWrongWithTheFiles) {
  const Identity one;
  const Identity other;
  Loop loop;
  HttpServer server(loop, [](Request, Responder) {});
  for (const auto& [cert, key] :
       {std::pair{one.dir / "missing", one.key}, std::pair{one.cert, one.dir / "missing"},
        std::pair{one.cert, other.key}, std::pair{one.key, one.key}}) {
    const auto result = server.ListenTls("127.0.0.1", 0, cert, key);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(result.error().hint.empty());
  }
}

}  // namespace
}  // namespace athanor
