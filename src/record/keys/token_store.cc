#include "record/keys/token_store.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/exec/mutex.h"
#include "base/ids.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/db/database.h"

namespace athanor {
namespace {

constexpr std::string_view kPrefix = "ath_";
constexpr size_t kIdBytes = 6;
constexpr size_t kSecretBytes = 24;
constexpr size_t kLongestNote = 200;
constexpr int64_t kMinuteMs = 60'000;

constexpr std::pair<Scope, std::string_view> kScopes[] = {
    {Scope::kRead, "read"},
    {Scope::kSubmit, "submit"},
    {Scope::kAdmin, "admin"},
    {Scope::kIngest, "ingest"},
};

constexpr std::string_view kColumns =
    "SELECT id, note, scope, bound, created, expires, last_used, revoked, hash FROM tokens";

struct Halves {
  std::string_view id;
  std::string_view secret;
};

std::optional<Halves> SplitToken(std::string_view text) {
  constexpr size_t kSize = kPrefix.size() + 2 * kIdBytes + 1 + 2 * kSecretBytes;
  if (text.size() != kSize || !StartsWith(text, kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  if (text[2 * kIdBytes] != '_') return std::nullopt;
  return Halves{text.substr(0, 2 * kIdBytes), text.substr(2 * kIdBytes + 1)};
}

Result<TokenInfo> InfoIn(const Statement& row) {
  const auto scope = ScopeNamed(row.Text(2));
  if (!scope) return Fail(ErrorCode::kCorrupt, "the store holds a token of an unknown scope");
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

// Always over a complete digest, so that an unknown id takes as long as a wrong secret.
bool SameDigest(std::string_view stored, std::string_view given) {
  static constexpr char kNone[64] = {};
  const bool known = stored.size() == given.size();
  const char* against = known ? stored.data() : kNone;
  return CRYPTO_memcmp(against, given.data(), std::min(given.size(), sizeof(kNone))) == 0 && known;
}

}  // namespace

std::string_view NameOf(Scope scope) {
  for (const auto& [known, name] : kScopes) {
    if (known == scope) return name;
  }
  return "";
}

std::optional<Scope> ScopeNamed(std::string_view name) {
  for (const auto& [scope, known] : kScopes) {
    if (known == name) return scope;
  }
  return std::nullopt;
}

bool Covers(Scope held, Scope needed) {
  switch (held) {
    case Scope::kAdmin:
      return needed != Scope::kIngest;
    case Scope::kSubmit:
      return needed == Scope::kSubmit || needed == Scope::kRead;
    case Scope::kRead:
      return needed == Scope::kRead;
    case Scope::kIngest:
      return needed == Scope::kIngest;
  }
  return false;
}

struct TokenStore::Parts {
  Database& database;
  Mutex mutex;
  // Id -> when its use was last written.
  std::map<std::string, int64_t, std::less<>> noted GUARDED_BY(mutex);

  // Whether this use should be written; also at most once per minute if writing fails.
  bool ShouldNote(const TokenInfo& info, WallTime now) {
    MutexLock lock(mutex);
    auto& last = noted.try_emplace(info.id, info.last_used.ms).first->second;
    if (std::abs(now.ms - last) < kMinuteMs) return false;
    last = now.ms;
    return true;
  }
};

TokenStore::TokenStore(Database& database) : parts_(new Parts{database, {}, {}}) {}
TokenStore::~TokenStore() = default;

Result<TokenStore::NewToken> TokenStore::Create(std::string note, Scope scope, WallTime now,
                                                WallTime expires, std::string bound) {
  if (note.size() > kLongestNote || Printable(note) != note) {
    return Fail(Error{ErrorCode::kInvalid, "the note of the token is too long or not plain text",
                      fmt::format("give at most {} bytes of printable text", kLongestNote)}
                    .Id("ATH-K0006"));
  }
  if (expires.ms != 0 && expires <= now) {
    return Fail(Error{ErrorCode::kInvalid, "the token would have expired already",
                      "give a time in the future"}
                    .Id("ATH-K0006"));
  }
  NewToken made;
  made.info = TokenInfo{RandomHex(kIdBytes),
                        std::move(note),
                        scope,
                        std::move(bound),
                        now,
                        expires,
                        WallTime{},
                        false};
  const std::string secret = RandomHex(kSecretBytes);
  made.text = fmt::format("{}{}_{}", kPrefix, made.info.id, secret);
  ATHANOR_CHECK_OK(parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("INSERT INTO tokens (id, hash, note, scope, bound, created, "
                                   "expires, last_used, revoked) "
                                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)"));
    statement->Bind(1, made.info.id);
    statement->Bind(2, Sha256Hex(secret));
    statement->Bind(3, made.info.note);
    statement->Bind(4, NameOf(scope));
    statement->Bind(5, made.info.bound);
    statement->Bind(6, now.ms);
    statement->Bind(7, expires.ms);
    ATHANOR_CHECK_OK(statement->Step());
    return Ok();
  }));
  return made;
}

Result<TokenInfo> TokenStore::Verify(std::string_view text, WallTime now) const {
  const auto denied = [] {
    return Fail(ErrorCode::kDenied, "the token is not valid",
                "ath token    makes and lists tokens; then set ATHANOR_TOKEN");
  };
  const auto halves = SplitToken(text);
  if (!halves) return denied();
  std::string stored;
  TokenInfo info;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement, connection.Prepare(std::string(kColumns) + " WHERE id = ?1"));
    statement->Bind(1, halves->id);
    ATHANOR_TRY(const bool row, statement->Step());
    if (!row) return Ok();
    stored = statement->Text(8);
    ATHANOR_TRY(info, InfoIn(*statement));
    return Ok();
  }));
  const bool same = SameDigest(stored, Sha256Hex(halves->secret));
  const bool expired = info.expires.ms != 0 && now >= info.expires;
  if (!same || info.revoked || expired) return denied();

  if (parts_->ShouldNote(info, now)) {
    // A full disk must not lock people out, so this may fail.
    (void)parts_->database.Write([&](Connection& connection) -> Status {
      ATHANOR_TRY(auto* statement,
                  connection.Prepare("UPDATE tokens SET last_used = ?2 WHERE id = ?1"));
      statement->Bind(1, info.id);
      statement->Bind(2, now.ms);
      ATHANOR_CHECK_OK(statement->Step());
      return Ok();
    });
    info.last_used = now;
  }
  return info;
}

Result<std::vector<TokenInfo>> TokenStore::List() const {
  std::vector<TokenInfo> tokens;
  ATHANOR_CHECK_OK(parts_->database.Read([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare(std::string(kColumns) + " ORDER BY created, id"));
    while (true) {
      ATHANOR_TRY(const bool row, statement->Step());
      if (!row) return Ok();
      ATHANOR_TRY(TokenInfo info, InfoIn(*statement));
      tokens.push_back(std::move(info));
    }
  }));
  return tokens;
}

Status TokenStore::Revoke(std::string_view id) {
  return parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("UPDATE tokens SET revoked = 1 WHERE id = ?1 RETURNING 1"));
    statement->Bind(1, id);
    ATHANOR_TRY(const bool row, statement->Step());
    if (row) return Ok();
    return Fail(Error{ErrorCode::kNotFound,
                      fmt::format("no token '{}'", Printable(id.substr(0, 80))), "ath token ls"}
                    .Id("ATH-K0005"));
  });
}

Status TokenStore::RevokeBound(std::string_view bound) {
  if (bound.empty()) return Fail(ErrorCode::kBug, "tokens of no attempt were to be revoked");
  std::vector<std::string> gone;
  ATHANOR_CHECK_OK(parts_->database.Write([&](Connection& connection) -> Status {
    ATHANOR_TRY(auto* statement,
                connection.Prepare("DELETE FROM tokens WHERE bound = ?1 AND bound <> '' "
                                   "RETURNING id"));
    statement->Bind(1, bound);
    while (true) {
      ATHANOR_TRY(const bool row, statement->Step());
      if (!row) return Ok();
      gone.emplace_back(statement->Text(0));
    }
  }));
  MutexLock lock(parts_->mutex);
  for (const auto& id : gone) parts_->noted.erase(id);
  return Ok();
}

}  // namespace athanor
