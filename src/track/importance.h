// How much each parameter influences a metric, by PED-ANOVA: compares where the best runs are with
// where all runs are. A parameter whose values are distributed over the best runs as over all runs
// has no weight. Deterministic, without a model; a constant parameter weighs 0. Pure.
//
// Follows Watanabe, Bansal & Hutter 2023: the variance that functional ANOVA (Hutter et al. 2014)
// gives a parameter, for the question "is a run among the best?", needs only those two densities.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace athanor {

struct ParamColumn {
  std::string name;
  std::vector<std::optional<std::string>> values;  // by run; none: the run has no such param
};

struct ParamWeight {
  std::string name;
  double importance = 0;  // all sum to 1, unless none has any
};

// `losses` by run, smaller is better; NaN is worse than any number. Columns have the same length.
// Highest weight first, then by name. With fewer than four runs, all are 0.
std::vector<ParamWeight> ParamWeights(const std::vector<double>& losses,
                                      const std::vector<ParamColumn>& columns);

}  // namespace athanor
