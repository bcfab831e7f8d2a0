#include "record/keys/secret_store.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/db/database.h"

namespace athanor {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr int kNonceBytes = 12;
constexpr int kTagBytes = 16;
constexpr size_t kShortestValue = 6;
constexpr size_t kLongestValue = 64 * 1024;
constexpr size_t kLongestName = 128;

using Key = std::array<unsigned char, kKeyBytes>;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

tl::unexpected<Error> CipherFailed() {
  return Fail(ErrorCode::kBug, "the cipher library refused to work");
}

// Nonce, cipher text, tag.
Result<std::string> SealBytes(const Key& key, std::string_view name, std::string_view value) {
  std::string sealed(static_cast<size_t>(kNonceBytes) + value.size() + kTagBytes, '\0');
  unsigned char* nonce = Bytes(sealed);
  unsigned char* text = nonce + kNonceBytes;
  const Cipher cipher(EVP_CIPHER_CTX_new());
  int written = 0;
  int tail = 0;
  const bool done =
      cipher != nullptr && RAND_bytes(nonce, kNonceBytes) == 1 &&
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &written, Bytes(name),
                        static_cast<int>(name.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), text, &written, Bytes(value),
                        static_cast<int>(value.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), text + written, &tail) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, text + value.size()) == 1;
  if (!done) return CipherFailed();
  return sealed;
}

Result<std::string> UnsealBytes(const Key& key, std::string_view name, std::string sealed) {
  const auto damaged = [&] {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the secret '{}' cannot be opened with this key file", name),
                "ath secret set " + ShellQuote(name));
  };
  if (sealed.size() < size_t{kNonceBytes} + kTagBytes) return damaged();
  const size_t size = sealed.size() - kNonceBytes - kTagBytes;
  unsigned char* nonce = Bytes(sealed);
  unsigned char* text = nonce + kNonceBytes;
  const Cipher cipher(EVP_CIPHER_CTX_new());
  if (cipher == nullptr) return CipherFailed();
  std::string value(size, '\0');
  int written = 0;
  int tail = 0;
  const bool done =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &written, Bytes(name),
                        static_cast<int>(name.size())) == 1 &&
      EVP_DecryptUpdate(cipher.get(), Bytes(value), &written, text, static_cast<int>(size)) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, text + size) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), Bytes(value) + written, &tail) == 1;
  if (done) return value;
  OPENSSL_cleanse(value.data(), value.size());
  return damaged();
}

Status CheckName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  bool good = !name.empty() && name.size() <= kLongestName && letter(name[0]);
  for (const char c : name) good = good && (letter(c) || (c >= '0' && c <= '9'));
  if (good) return Ok();
  return Fail(Error{
      ErrorCode::kInvalid, fmt::format("'{}' cannot name a secret", Printable(name.substr(0, 80))),
      "use letters, digits and _, not starting with a digit: ath secret set API_TOKEN"}
                  .Id("ATH-K0001"));
}

tl::unexpected<Error> BadValue(std::string what, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}.Id("ATH-K0002"));
}

Status CheckValue(std::string_view value) {
  if (value.size() < kShortestValue) {
    return BadValue(fmt::format("the value is shorter than {} bytes", kShortestValue),
                    "a value this short cannot be scrubbed from logs; use a longer one");
  }
  if (value.size() > kLongestValue) {
    return BadValue("the value is longer than 64 KiB",
                    "keep it in a file and refer to it: source: file");
  }
  if (value.find('\0') != std::string_view::npos) {
    return BadValue("the value contains a NUL byte",
                    "an environment variable cannot hold one; encode it: base64 FILE");
  }
  return Ok();
}

tl::unexpected<Error> NoSecret(std::string_view name) {
  return Fail(Error{ErrorCode::kNotFound,
                    fmt::format("no secret '{}'", Printable(name.substr(0, 80))), "ath secret ls"}
                  .Id("ATH-K0003"));
}

Result<bool> AnySecret(const Database& database) {
  bool any = false;
  ATHANOR_CHECK_OK(database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("SELECT 1 FROM secrets UNION ALL SELECT 1 FROM access_keys "
                                   "LIMIT 1"));
    ATHANOR_TRY(any, statement->Step());
    return Ok();
  }));
  return any;
}

Status MakeKeyFile(const std::string& path) {
  Key key;
  if (RAND_bytes(key.data(), kKeyBytes) != 1) return CipherFailed();
  std::string text = Hex({reinterpret_cast<const char*>(key.data()), key.size()}) + "\n";
  Status written = WriteFileAtomic(path, text, 0600);
  OPENSSL_cleanse(key.data(), key.size());
  OPENSSL_cleanse(text.data(), text.size());
  return written;
}

Result<Key> ReadKeyFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return FailErrno("open " + path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FailErrno("stat " + path, errno);
  // Of the open descriptor, so that the file that is checked is the one that is read.
  if ((status.st_mode & 077) != 0) {
    return Fail(ErrorCode::kDenied, "others may read the key of the secrets: " + path,
                "chmod 600 " + ShellQuote(path));
  }
  ATHANOR_TRY(std::string text, ReadAll(file.get(), 4096));
  const std::string_view digits = Trim(text);
  Key key{};
  bool good = digits.size() == 2 * kKeyBytes;
  for (size_t i = 0; good && i < digits.size(); ++i) {
    const char c = digits[i];
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    good = value >= 0;
    key[i / 2] = static_cast<unsigned char>(key[i / 2] << 4 | (value & 15));
  }
  OPENSSL_cleanse(text.data(), text.size());
  if (good) return key;
  return Fail(ErrorCode::kCorrupt, "the key file of the secrets is damaged: " + path,
              "put a copy of it back");
}

}  // namespace

struct SecretStore::Parts {
  Database& database;
  Key key;
  ~Parts() { OPENSSL_cleanse(key.data(), key.size()); }
};

SecretStore::SecretStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SecretStore::~SecretStore() = default;

Result<std::unique_ptr<SecretStore>> SecretStore::Open(Database& database, std::string key_file) {
  if (!Exists(key_file)) {
    ATHANOR_TRY(const bool any, AnySecret(database));
    if (any) {
      return Fail(ErrorCode::kCorrupt, "the key file of the stored secrets is gone: " + key_file,
                  "put a copy of it back; without it their values cannot be read");
    }
    ATHANOR_CHECK_OK(MakeKeyFile(key_file));
  }
  ATHANOR_TRY(const Key key, ReadKeyFile(key_file));
  return std::unique_ptr<SecretStore>(
      new SecretStore(std::unique_ptr<Parts>(new Parts{database, key})));
}

Status SecretStore::Set(std::string_view name, std::string_view value, WallTime now) {
  ATHANOR_CHECK_OK(CheckName(name));
  ATHANOR_CHECK_OK(CheckValue(value));
  ATHANOR_TRY(const std::string sealed, SealBytes(parts_->key, name, value));
  return parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("INSERT INTO secrets (name, sealed, created, updated) "
                                   "VALUES (?1, ?2, ?3, ?3) ON CONFLICT (name) DO UPDATE "
                                   "SET sealed = excluded.sealed, updated = excluded.updated"));
    statement->Bind(1, name);
    statement->Bind(2, Base64(sealed));
    statement->Bind(3, now.ms);
    ATHANOR_CHECK_OK(statement->Step());
    return Ok();
  });
}

Result<std::string> SecretStore::Reveal(std::string_view name) const {
  ATHANOR_CHECK_OK(CheckName(name));
  std::string stored;
  bool found = false;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare("SELECT sealed FROM secrets WHERE name = ?1"));
    statement->Bind(1, name);
    ATHANOR_TRY(found, statement->Step());
    if (found) stored = statement->Text(0);
    return Ok();
  }));
  if (!found) return NoSecret(name);
  return UnsealBytes(parts_->key, name, FromBase64(stored).value_or(""));
}

Result<std::vector<SecretInfo>> SecretStore::List() const {
  std::vector<SecretInfo> secrets;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("SELECT name, created, updated FROM secrets ORDER BY name"));
    while (true) {
      ATHANOR_TRY(const bool row, statement->Step());
      if (!row) return Ok();
      secrets.push_back({std::string(statement->Text(0)), WallTime{statement->Int(1)},
                         WallTime{statement->Int(2)}});
    }
  }));
  return secrets;
}

bool SecretStore::Has(std::string_view name) const {
  bool found = false;
  const Status read = parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare("SELECT 1 FROM secrets WHERE name = ?1"));
    statement->Bind(1, name);
    ATHANOR_TRY(found, statement->Step());
    return Ok();
  });
  return read.ok() && found;
}

Status SecretStore::Remove(std::string_view name) {
  return parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("DELETE FROM secrets WHERE name = ?1 RETURNING 1"));
    statement->Bind(1, name);
    ATHANOR_TRY(const bool found, statement->Step());
    if (!found) return NoSecret(name);
    return Ok();
  });
}

Result<std::string> SecretStore::Seal(std::string_view name, std::string_view value) const {
  ATHANOR_TRY(const std::string sealed, SealBytes(parts_->key, name, value));
  return Base64(sealed);
}

Result<std::string> SecretStore::Unseal(std::string_view name, std::string_view sealed) const {
  return UnsealBytes(parts_->key, name, FromBase64(sealed).value_or(""));
}

}  // namespace athanor
