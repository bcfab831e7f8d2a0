// Secrets by name, encrypted at rest (AES-256-GCM, a fresh nonce each, the name as associated data)
// under a key file made 0600 at first start. Values leave only through Reveal, which only the
// agents' routes call.
//
// Threads: every method is safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"

namespace athanor {

class Database;

struct SecretInfo {
  std::string name;
  WallTime created;
  WallTime updated;
};

class SecretStore {
 public:
  // Creates `key_file` if it is missing and no secret is stored yet; kCorrupt if it is missing but
  // secrets are stored, kDenied if others may read it.
  static Result<std::unique_ptr<SecretStore>> Open(Database& database, std::string key_file);
  ~SecretStore();
  // Names: [A-Za-z_][A-Za-z0-9_]{0,127}. Values: 6 bytes to 64 KiB, no NUL;
  // shorter ones cannot be scrubbed from logs without destroying them.
  Status Set(std::string_view name, std::string_view value, WallTime now);
  Result<std::string> Reveal(std::string_view name) const;  // kNotFound, kCorrupt
  Result<std::vector<SecretInfo>> List() const;
  bool Has(std::string_view name) const;
  Status Remove(std::string_view name);

  // For values of other stores in this room: text encrypted with the same key, with `name` as
  // associated data. kCorrupt: not encrypted with this key and name.
  Result<std::string> Seal(std::string_view name, std::string_view value) const;
  Result<std::string> Unseal(std::string_view name, std::string_view sealed) const;

 private:
  struct Parts;
  explicit SecretStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
