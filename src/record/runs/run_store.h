// RunStore keeps experiments, runs and models in the database. Queries are answered from memory
// (track/run_book.h), which is loaded from here once, at the start.
//
// Threads: safe from any. A Commit is one transaction, durable when it returns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/runs/run_rows.h"

namespace athanor {

class Database;

struct LabelView {
  LabelKind kind = LabelKind::kTag;
  std::string_view owner;
  std::string_view key;
  std::string_view value;
};

// Gets experiments and runs one by one: experiments first, then runs by id, then their keys and
// values by kind, owner and key. Views are valid during the call.
class RunVisitor {
 public:
  virtual ~RunVisitor() = default;
  virtual void On(ExperimentRow row) = 0;
  virtual void On(RunRow row) = 0;
  virtual void On(const LabelView& label) = 0;
  virtual void On(InputRow row) = 0;
  virtual void On(ModelLinkRow row) = 0;
};

class RunStore {
 public:
  explicit RunStore(Database& database) : database_(database) {}

  // All of them in order or, after an error, none. kConflict: a name is taken.
  Status Commit(const std::vector<const RunBatch*>& batches);
  Status Commit(const RunBatch& batch) { return Commit(std::vector{&batch}); }

  // Experiments and runs. There may be a million, so they are not collected here.
  Status Visit(RunVisitor& visitor) const;
  // Models, their versions, and their keys and values: in each list one entry per owner (and key),
  // without removed ones.
  Result<RunBatch> LoadModels() const;
  // Profile and schema of data sets are large and rarely asked for: not part of Load.
  Result<DatasetRow> Dataset(int64_t experiment, const std::string& name,
                             const std::string& digest) const;  // kNotFound

 private:
  Database& database_;
};

}  // namespace athanor
