// Tokens `ath_<id>_<secret>`: stored as sha256 of the secret, shown once, scoped,
// expiring, revocable. Agents and scripts have tokens that are not stored (door/context.h).
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

enum class Scope { kRead, kSubmit, kAdmin };
std::string_view NameOf(Scope scope);
std::optional<Scope> ScopeNamed(std::string_view name);
// admin includes submit, submit includes read.
bool Covers(Scope held, Scope needed);

struct TokenInfo {
  std::string id;
  std::string note;
  Scope scope = Scope::kRead;
  std::string bound;  // the attempt whose key it is; else empty
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
  Result<NewToken> Create(std::string note, Scope scope, WallTime now, WallTime expires);
  // kDenied for unknown, wrong, expired and revoked alike; compares in constant time.
  Result<TokenInfo> Verify(std::string_view text, WallTime now) const;
  Result<std::vector<TokenInfo>> List() const;
  Status Revoke(std::string_view id);  // kNotFound

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
