// RunStore keeps experiments, runs and models in the database. What is asked of them is
// answered from memory (track/run_book.h), which is read from here once, at the start.
//
// Threads: safe from any. A Commit is one transaction, durable when it returns.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "record/runs/run_rows.h"

namespace athanor {

class Database;

class RunStore {
 public:
  explicit RunStore(Database& database) : database_(database) {}

  // All of them in order, or, on an error, none. kConflict: a name is taken.
  Status Commit(const std::vector<const RunBatch*>& batches);
  Status Commit(const RunBatch& batch) { return Commit(std::vector{&batch}); }

  // Everything there is: of each list one entry per owner (and key), none taken away.
  Result<RunBatch> Load() const;
  // Profile and schema of data sets are large and rarely asked for: not part of Load.
  Result<DatasetRow> Dataset(int64_t experiment, const std::string& name,
                             const std::string& digest) const;  // kNotFound

 private:
  Database& database_;
};

}  // namespace athanor
