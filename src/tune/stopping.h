// When a trial is not worth continuing. Each rule is a state machine over reports (trial, step,
// value; lower is better) in the order in which they arrive: the same reports give the same
// verdicts, so only a journal of reports has to be stored. The code that runs trials decides once,
// here, and tells all ranks; ranks never decide themselves. Not thread-safe.
//
// Follows Li et al. 2020 (ASHA: the promotion form; the stopping form asks the same at each rung
// and ends the others), Li et al. 2018 (Hyperband), Golovin et al. 2017 (Vizier's median rule) and
// Domhan et al. 2015 (learning curves; one of their families, with a bootstrap instead of a Markov
// chain).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace athanor::tune {

enum class Verdict { kGoOn, kStop, kPause };

struct AshaOptions {
  enum class Form {
    kStopping,   // trials below the cut end
    kPromotion,  // trials wait at each rung for Promote(); they continue from their checkpoint
  };
  int64_t first = 1;  // step of the first rung
  int64_t last = 81;  // a trial that reaches it is complete
  double eta = 3;     // rungs are a factor `eta` apart; one in `eta` continues
  Form form = Form::kStopping;
};

// Asynchronous successive halving.
class Asha {
 public:
  explicit Asha(const AshaOptions& options);

  // A trial's value at a step. It counts for every rung it reached since its last report; rungs
  // take a trial once. A value that is not finite stops the trial at a rung. Otherwise there is no
  // verdict before `eta` trials reached the rung. Reports of stopped trials are kStop again.
  Verdict Report(int64_t trial, int64_t step, double value);

  struct Promotion {
    int64_t trial = 0;
    int64_t until = 0;  // the step of the next rung
  };
  // Promotion form: the paused trial that continues next, from the highest rung down, the best
  // first; at most one in `eta` of a rung ever leaves it. Empty: start a new trial.
  std::optional<Promotion> Promote();

  const std::vector<int64_t>& rungs() const { return rungs_; }  // below `last`
  size_t reached(size_t rung) const { return results_[rung].size(); }

 private:
  struct Row {
    double value;
    int64_t trial;
    bool operator<(const Row& other) const {
      return value != other.value ? value < other.value : trial < other.trial;
    }
  };
  bool AmongTheBest(size_t rung, const Row& row) const;

  AshaOptions options_;
  std::vector<int64_t> rungs_;
  std::vector<std::set<Row>> results_;       // by rung; failed ones last, as infinity
  std::vector<std::set<int64_t>> promoted_;  // by rung
  std::map<int64_t, size_t> next_rung_;      // of a trial
  std::set<int64_t> stopped_;
};

// Brackets of Asha that start at different rungs, so that a search does not depend on short runs
// being representative. A trial belongs to one bracket, by its number.
class Hyperband {
 public:
  explicit Hyperband(const AshaOptions& options);

  size_t BracketOf(int64_t trial) const;  // fixed shares, as many trials as Hyperband gives it
  Asha& Bracket(size_t bracket) { return brackets_[bracket]; }
  size_t brackets() const { return brackets_.size(); }
  Verdict Report(int64_t trial, int64_t step, double value);
  std::optional<Asha::Promotion> Promote();

 private:
  std::vector<Asha> brackets_;
  std::vector<size_t> shares_;
};

// Stops a trial whose mean so far is worse than the median of what finished trials had by then.
// With its mean, not its best value as in Vizier: one lucky report does not save it.
class MedianRule {
 public:
  explicit MedianRule(int64_t grace, size_t least_finished = 5)
      : grace_(grace), least_finished_(least_finished) {}
  Verdict Report(int64_t trial, int64_t step, double value);
  void Finished(int64_t trial);

 private:
  struct Curve {
    std::map<int64_t, double> means;  // running mean by step
    double sum = 0;
    size_t count = 0;
  };
  int64_t grace_;
  size_t least_finished_;
  std::map<int64_t, Curve> curves_;
  std::set<int64_t> finished_;
};

struct CurvePoint {
  int64_t step = 0;
  double value = 0;
  bool operator==(const CurvePoint&) const = default;
};
// The probability that a curve a + b t^-c, fitted to the points, is below `best` at `last`; by a
// bootstrap of the residuals, with randomness from `seed`. Empty below 4 points, or when they
// cannot be fitted.
std::optional<double> ChanceToBeat(const std::vector<CurvePoint>& points, int64_t last, double best,
                                   uint64_t seed);

}  // namespace athanor::tune
