// OpenSSL's plain SHA-256 rather than its EVP layer, whose first use in a process
// loads a configuration and providers: 1 to 3 ms, against 2 us, in every program that
// hashes one name.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/io/hash.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text/text.h"

namespace athanor {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), &state_->context);
  return Hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.HexDigest();
}

Result<std::string> Sha256File(int fd) {
  Sha256 hash;
  std::string buffer(256 * 1024, '\0');
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return hash.HexDigest();
    if (got < 0) {
      if (errno == EINTR) continue;
      return FailErrno("read", errno);
    }
    hash.Update({buffer.data(), static_cast<size_t>(got)});
  }
}

bool SameSecretText(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace athanor
