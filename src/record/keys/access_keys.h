// Access keys: an id and a secret that sign requests (AWS Signature V4). The secret is needed again
// to verify a signature, so it is stored encrypted with the secrets' key file, with the id as
// associated data. Scoped, expiring and revocable like tokens.
//
// Threads: every method is safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "record/keys/token_store.h"

namespace athanor {

class Database;
class SecretStore;

class AccessKeys {
 public:
  AccessKeys(Database& database, const SecretStore& secrets);
  ~AccessKeys();

  struct Key {
    std::string secret;  // 40 letters and digits
    TokenInfo info;      // id: 20 capital letters and digits, "ATHA…"
  };
  // Only this call returns the secret.
  Result<Key> Create(std::string note, Scope scope, WallTime now, WallTime expires);
  // For verifying. kNotFound: unknown or revoked. kDenied: expired. kCorrupt: the key file does not
  // decrypt it. The use is recorded, at most once per minute.
  Result<Key> Find(std::string_view id, WallTime now) const;
  Result<std::vector<TokenInfo>> List() const;
  Status Revoke(std::string_view id);  // kNotFound

 private:
  Result<Key> Open(std::string_view id) const;

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
