#include "net/certificate.h"

#include <ctime>
#include <memory>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr size_t kMostPem = 64 << 10;
// RFC 5280: a certificate without a well-defined end. The pin is what counts.
constexpr char kNoEnd[] = "99991231235959Z";
// Clocks of other machines may be behind.
constexpr long kBeforeNow = -24L * 3600;

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Bio = std::unique_ptr<BIO, Free>;

Bio Over(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string TextOf(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : std::string();
}

// Never asks for a password on a terminal.
int NoPassword(char*, int, int, void*) { return 0; }

Key ReadKey(const std::string& pem) {
  Key key(PEM_read_bio_PrivateKey(Over(pem).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

Certificate ReadCertificate(const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(Over(pem).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return certificate;
}

tl::unexpected<Error> FailCrypto(const char* what) {
  ERR_clear_error();
  return Fail(ErrorCode::kBug, std::string("cannot ") + what);
}

Result<std::string> MakeKeyText() {
  const Key key(EVP_EC_gen("P-256"));
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!key || !bio ||
      PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return FailCrypto("make a key for agents");
  }
  return TextOf(bio.get());
}

Result<std::string> MakeCertificateText(EVP_PKEY* key) {
  const Certificate made(X509_new());
  const Bio bio(BIO_new(BIO_s_mem()));
  uint64_t serial = 0;
  if (!made || !bio || RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) {
    return FailCrypto("make a certificate for agents");
  }
  X509* certificate = made.get();
  X509_NAME* name = X509_get_subject_name(certificate);
  const bool whole =
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), kBeforeNow) != nullptr &&
      ASN1_TIME_set_string(X509_getm_notAfter(certificate), kNoEnd) == 1 &&
      X509_set_pubkey(certificate, key) == 1 &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>("athanor"), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(certificate, name) == 1 &&
      X509_sign(certificate, key, EVP_sha256()) > 0 &&
      PEM_write_bio_X509(bio.get(), certificate) == 1;
  if (!whole) return FailCrypto("make a certificate for agents");
  return TextOf(bio.get());
}

}  // namespace

std::string PinOf(const x509_st* certificate) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes);
  if (size <= 0) return {};
  std::string pin = Sha256Hex({reinterpret_cast<char*>(bytes), static_cast<size_t>(size)});
  OPENSSL_free(bytes);
  return pin;
}

Result<std::string> PinOfFile(const std::string& cert_file) {
  ATHANOR_TRY(const std::string pem, ReadFile(cert_file, kMostPem));
  const auto certificate = ReadCertificate(pem);
  if (!certificate) return Fail(ErrorCode::kInvalid, cert_file + " holds no certificate (PEM)");
  return PinOf(certificate.get());
}

Result<OwnCertificate> OpenOwnCertificate(const std::string& folder) {
  OwnCertificate own{JoinPath(folder, "agents.crt"), JoinPath(folder, "agents.key"), ""};
  auto text = ReadFile(own.key_file, kMostPem);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    text = MakeKeyText();
    if (text) ATHANOR_CHECK_OK(WriteFileAtomic(own.key_file, *text, 0600));
  }
  ATHANOR_TRY(const std::string pem, std::move(text));
  const Key key = ReadKey(pem);
  if (!key) {
    return Fail(
        Error{ErrorCode::kCorrupt, own.key_file + " is damaged",
              "put back the one of a backup (server/agents.key), or have a new one made, after "
              "which agents of other machines that run now are not heard any more: mv " +
                  ShellQuote(own.key_file) + " " + ShellQuote(own.key_file + ".damaged")}
            .Why("agents of other machines know this server by that key"));
  }
  const auto kept = ReadFile(own.cert_file, kMostPem);
  auto certificate = kept ? ReadCertificate(*kept) : nullptr;
  if (!certificate || X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    ATHANOR_TRY(const std::string made, MakeCertificateText(key.get()));
    ATHANOR_CHECK_OK(WriteFileAtomic(own.cert_file, made, 0600));
    certificate = ReadCertificate(made);
  }
  if (!certificate) return FailCrypto("read the certificate for agents");
  own.pin = PinOf(certificate.get());
  return own;
}

}  // namespace athanor
