// Small JSON texts that a door stores in addition to jobs (tags by resource, requests that are not
// supported yet), by (kind, name). The store does not look into them.
//
// Threads: every method is safe from any thread. Durable when a call returns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"

namespace athanor {

class Database;

struct Document {
  std::string name;
  std::string text;
  WallTime created;
  WallTime updated;
};

class DocumentStore {
 public:
  explicit DocumentStore(Database& database) : database_(database) {}

  // kConflict if one of that name exists.
  Status Create(std::string_view kind, std::string_view name, std::string_view text, WallTime now);
  // Creates or replaces.
  Status Put(std::string_view kind, std::string_view name, std::string_view text, WallTime now);
  Result<std::optional<Document>> Find(std::string_view kind, std::string_view name) const;
  Status Remove(std::string_view kind, std::string_view name);      // fine if there is none
  Result<std::vector<Document>> List(std::string_view kind) const;  // newest first

 private:
  Database& database_;
};

}  // namespace athanor
