#include "record/keys/access_keys.h"

#include <openssl/rand.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "base/exec/mutex.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/db/database.h"
#include "record/keys/secret_store.h"

namespace athanor {
namespace {

constexpr std::string_view kPrefix = "ATHA";
constexpr size_t kIdSize = 20;  // as long as AWS's own, since clients check
constexpr size_t kSecretSize = 40;
constexpr size_t kLongestNote = 200;
constexpr int64_t kMinuteMs = 60'000;
constexpr size_t kMostOpened = 1000;
constexpr std::string_view kIdLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
// No slash or plus, which need quoting in URLs and shells; 32 divides 256.
constexpr std::string_view kSecretLetters = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view kColumns =
    "SELECT id, note, scope, bound, created, expires, last_used, revoked, sealed FROM access_keys";

Result<std::string> RandomText(std::string_view letters, size_t size) {
  std::string text(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(text.data()), static_cast<int>(size)) != 1) {
    return Fail(ErrorCode::kBug, "no random bytes can be had");
  }
  for (char& c : text) c = letters[static_cast<unsigned char>(c) % letters.size()];
  return text;
}

std::string SealName(std::string_view id) { return "access key " + std::string(id); }

Result<TokenInfo> InfoIn(const Statement& row) {
  const auto scope = ScopeNamed(row.Text(2));
  if (!scope) return Fail(ErrorCode::kCorrupt, "the store holds an access key of an unknown scope");
  TokenInfo info;
  info.id = row.Text(0);
  info.note = row.Text(1);
  info.scope = *scope;
  info.bound = row.Text(3);
  info.created = WallTime{row.Int(4)};
  info.expires = WallTime{row.Int(5)};
  info.last_used = WallTime{row.Int(6)};
  info.revoked = row.Int(7) != 0;
  return info;
}

tl::unexpected<Error> Unknown(std::string_view id) {
  return Fail(Error{ErrorCode::kNotFound,
                    fmt::format("no access key '{}'", Printable(id.substr(0, 80))), "ath token ls"}
                  .Id("ATH-K0005"));
}

}  // namespace

struct AccessKeys::Parts {
  Database& database;
  const SecretStore& secrets;
  Mutex mutex;
  // Id -> when its use was last written.
  std::map<std::string, int64_t, std::less<>> noted GUARDED_BY(mutex);
  // What Find has read and decrypted, so that a request does not read the store. Every revocation
  // empties it; `revocations` shows one that comes between reading and caching.
  std::map<std::string, Key, std::less<>> opened GUARDED_BY(mutex);
  uint64_t revocations GUARDED_BY(mutex) = 0;

  struct Look {
    std::optional<Key> key;
    uint64_t revocations = 0;
  };
  Look Opened(std::string_view id) {
    MutexLock lock(mutex);
    const auto at = opened.find(id);
    return {at == opened.end() ? std::nullopt : std::optional(at->second), revocations};
  }

  void Keep(const Key& key, uint64_t seen) {
    MutexLock lock(mutex);
    if (seen != revocations) return;
    if (opened.size() >= kMostOpened) opened.clear();
    opened.insert_or_assign(key.info.id, key);
  }

  void Forget() {
    MutexLock lock(mutex);
    ++revocations;
    opened.clear();
  }

  bool ShouldNote(const TokenInfo& info, WallTime now) {
    MutexLock lock(mutex);
    auto& last = noted.try_emplace(info.id, info.last_used.ms).first->second;
    if (std::abs(now.ms - last) < kMinuteMs) return false;
    last = now.ms;
    return true;
  }
};

AccessKeys::AccessKeys(Database& database, const SecretStore& secrets)
    : parts_(new Parts{database, secrets, {}, {}, {}}) {}
AccessKeys::~AccessKeys() = default;

Result<AccessKeys::Key> AccessKeys::Create(std::string note, Scope scope, WallTime now,
                                           WallTime expires) {
  if (note.size() > kLongestNote || Printable(note) != note) {
    return Fail(Error{ErrorCode::kInvalid, "the note of the key is too long or not plain text",
                      fmt::format("give at most {} bytes of printable text", kLongestNote)}
                    .Id("ATH-K0006"));
  }
  if (expires.ms != 0 && expires <= now) {
    return Fail(Error{ErrorCode::kInvalid, "the key would have expired already",
                      "give a time in the future"}
                    .Id("ATH-K0006"));
  }
  Key key;
  ATHANOR_TRY(key.secret, RandomText(kSecretLetters, kSecretSize));
  ATHANOR_TRY(const std::string tail, RandomText(kIdLetters, kIdSize - kPrefix.size()));
  key.info = TokenInfo{
      std::string(kPrefix) + tail, std::move(note), scope, "", now, expires, WallTime{}, false};
  ATHANOR_TRY(const std::string sealed, parts_->secrets.Seal(SealName(key.info.id), key.secret));
  ATHANOR_CHECK_OK(parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("INSERT INTO access_keys (id, sealed, note, scope, bound, "
                                   "created, expires, last_used, revoked) "
                                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)"));
    statement->Bind(1, key.info.id);
    statement->Bind(2, sealed);
    statement->Bind(3, key.info.note);
    statement->Bind(4, NameOf(scope));
    statement->Bind(5, key.info.bound);
    statement->Bind(6, now.ms);
    statement->Bind(7, expires.ms);
    ATHANOR_CHECK_OK(statement->Step());
    return Ok();
  }));
  return key;
}

// From the store; the caller checks whether it has expired.
Result<AccessKeys::Key> AccessKeys::Open(std::string_view id) const {
  Key key;
  std::string sealed;
  bool found = false;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare(std::string(kColumns) + " WHERE id = ?1"));
    statement->Bind(1, id);
    ATHANOR_TRY(found, statement->Step());
    if (!found) return Ok();
    sealed = statement->Text(8);
    ATHANOR_TRY(key.info, InfoIn(*statement));
    return Ok();
  }));
  if (!found || key.info.revoked) return Unknown(id);
  ATHANOR_TRY(key.secret, parts_->secrets.Unseal(SealName(key.info.id), sealed));
  return key;
}

Result<AccessKeys::Key> AccessKeys::Find(std::string_view id, WallTime now) const {
  auto known = parts_->Opened(id);
  if (!known.key) {
    ATHANOR_TRY(known.key, Open(id));
    parts_->Keep(*known.key, known.revocations);
  }
  Key& key = *known.key;
  if (key.info.expires.ms != 0 && now >= key.info.expires) {
    return Fail(ErrorCode::kDenied, "the access key has expired", "ath token create --aws");
  }
  if (parts_->ShouldNote(key.info, now)) {
    // A full disk must not lock people out, so this may fail.
    (void)parts_->database.Write([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* statement,
                  connection.Prepare("UPDATE access_keys SET last_used = ?2 WHERE id = ?1"));
      statement->Bind(1, key.info.id);
      statement->Bind(2, now.ms);
      ATHANOR_CHECK_OK(statement->Step());
      return Ok();
    });
    key.info.last_used = now;
  }
  return std::move(key);
}

Result<std::vector<TokenInfo>> AccessKeys::List() const {
  std::vector<TokenInfo> keys;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare(std::string(kColumns) + " ORDER BY created, id"));
    while (true) {
      ATHANOR_TRY(const bool row, statement->Step());
      if (!row) return Ok();
      ATHANOR_TRY(TokenInfo info, InfoIn(*statement));
      keys.push_back(std::move(info));
    }
  }));
  return keys;
}

Status AccessKeys::Revoke(std::string_view id) {
  Status revoked = parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("UPDATE access_keys SET revoked = 1 WHERE id = ?1 RETURNING 1"));
    statement->Bind(1, id);
    ATHANOR_TRY(const bool row, statement->Step());
    if (!row) return Unknown(id);
    return Ok();
  });
  parts_->Forget();
  return revoked;
}

}  // namespace athanor
