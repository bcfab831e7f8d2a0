// StudyStore keeps tuning jobs: for each a row that lists show, what was asked for as it came, and
// a journal of what happened, one JSON object per line, numbered from 1 without a gap. `study`
// knows what the lines mean: a study is computed from its journal.
//
// Threads: safe from any. Every change is one transaction, durable when it returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/ids.h"
#include "base/result.h"

namespace athanor {

class Database;

using StudyId = Id<struct StudyTag>;

struct StudyRow {
  StudyId id;
  std::string key;   // idempotency key; unique
  std::string name;  // not unique: the newest of that name is meant
  std::string user;
  std::string state;
  bool live = true;
  WallTime created;
  WallTime updated;
  std::string spec;    // JSON, as accepted
  uint64_t lines = 0;  // of its journal
};

class StudyStore {
 public:
  explicit StudyStore(Database& database) : database_(database) {}

  // With the first lines of its journal. kConflict: the key is taken.
  Status Create(const StudyRow& row, const std::vector<std::string>& lines);
  // Lines after the `after`-th, and the new state of the row. kConflict if the journal has another
  // length: nothing is stored, so that two writers never mix.
  Status Append(StudyId id, uint64_t after, const std::vector<std::string>& lines,
                std::string_view state, bool live, WallTime now);
  Status Remove(StudyId id);  // with its journal; fine if there is none

  Result<std::vector<StudyRow>> List(bool live_only = false) const;  // newest first
  Result<std::optional<StudyRow>> FindKey(std::string_view key) const;
  // An id, a key, an end of an id of at least four digits, a name (the newest of it), or @last.
  // kNotFound with near names in the hint.
  Result<StudyRow> Resolve(std::string_view reference) const;
  Result<std::vector<std::string>> Lines(StudyId id) const;

 private:
  Database& database_;
};

}  // namespace athanor
