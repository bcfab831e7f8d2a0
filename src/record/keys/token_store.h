// Tokens `ath_<id>_<secret>`: stored as sha256 of the secret, shown once, scoped,
// expiring, revocable. A job's own ingest token is bound to its attempt.
//
// Threads: every method is safe from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"

namespace athanor {

class Database;

enum class Scope { kRead, kSubmit, kAdmin, kIngest };
std::string_view NameOf(Scope scope);
std::optional<Scope> ScopeNamed(std::string_view name);
// admin includes submit, submit includes read; ingest includes nothing else.
bool Covers(Scope held, Scope needed);

struct TokenInfo {
  std::string id;
  std::string note;
  Scope scope = Scope::kRead;
  std::string bound;  // attempt id for ingest tokens; else empty
  WallTime created;
  WallTime expires;    // 0: never
  WallTime last_used;  // 0: never; kept to the minute
  bool revoked = false;
};

class TokenStore {
 public:
  explicit TokenStore(Database& database);
  ~TokenStore();
  struct NewToken {
    std::string text;  // the only time it is shown
    TokenInfo info;
  };
  Result<NewToken> Create(std::string note, Scope scope, WallTime now, WallTime expires,
                          std::string bound = {});
  // kDenied for unknown, wrong, expired and revoked alike; compares in constant time.
  Result<TokenInfo> Verify(std::string_view text, WallTime now) const;
  Result<std::vector<TokenInfo>> List() const;
  Status Revoke(std::string_view id);  // kNotFound
  // Removes every token bound to the attempt; one is made per attempt, so they must not accumulate.
  Status RevokeBound(std::string_view bound);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
