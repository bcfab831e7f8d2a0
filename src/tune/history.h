// The trials of one search, in the order in which they were asked for and told: everything that a
// strategy may use. Values are lower-is-better; a failed trial has none.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/space.h"

namespace athanor::tune {

struct Trial {
  enum class State { kRunning, kDone, kFailed };
  int64_t id = 0;
  Assignment values;
  Point point;
  State state = State::kRunning;
  double value = 0;  // of kDone
};

class History {
 public:
  explicit History(const Space& space) : space_(&space) {}

  // kConflict if the id is taken.
  Status Asked(int64_t id, Assignment values);
  // A value that is not finite is a failure. Telling the same again changes nothing; telling
  // something else is kConflict; an id never asked for is kNotFound.
  Status Told(int64_t id, double value);
  Status Failed(int64_t id);
  // A trial made elsewhere. Gives it an id and returns that.
  int64_t Imported(Assignment values, double value, bool failed);
  // The space has new ranges: trials outside count as at its edge.
  void Recode();

  const std::vector<Trial>& trials() const { return trials_; }
  // Indices into trials(), in the order of telling; imported and failed ones included.
  const std::vector<size_t>& told() const { return told_; }
  std::vector<size_t> Running() const;
  const Trial* Find(int64_t id) const;
  const Trial* Best() const;  // null while no trial is done
  bool Tried(const Assignment& values) const { return keys_.count(KeyOf(values)) > 0; }
  size_t distinct() const { return keys_.size(); }
  int64_t next_id() const { return next_id_; }
  uint64_t asks() const { return asks_; }  // how many trials were asked for: the next ask's k

 private:
  Result<Trial*> Open(int64_t id);
  void Add(int64_t id, Assignment values);

  const Space* space_;
  std::vector<Trial> trials_;
  std::vector<size_t> told_;
  std::map<int64_t, size_t> by_id_;
  std::set<std::string> keys_;
  int64_t next_id_ = 0;
  uint64_t asks_ = 0;
};

}  // namespace athanor::tune
