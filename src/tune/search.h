// The search for the best point of an acquisition over a mixed space: random points and mutants
// of good trials, rounds of shrinking mutation (category flips, steps of ints, Gaussian steps of
// floats), gradient ascent on the floats, sweeps over neighbouring choices and ints.
//
// Ours, of parts that others proved: evolution without gradients as in Vizier (Song et al. 2024),
// because an acquisition is flat between its hills; then, as in Optuna's GPSampler, gradients where
// there are any and every neighbour where there are none, instead of rounding a continuous optimum.
#pragma once

#include <vector>

#include "tune/gp/acquisition.h"
#include "tune/random.h"
#include "tune/space.h"

namespace athanor::tune {

struct SearchSize {
  size_t global = 256;  // random points
  size_t mutants = 24;  // of each good trial
  size_t rounds = 5;
  size_t ascents = 5;       // gradient ascents
  size_t evaluations = 30;  // of one ascent
  size_t sweeps = 3;        // over neighbours, at most
};

// Points in order of acquisition, best first. `good` are points worth varying.
std::vector<Point> SearchMixed(const Space& space, Acquisition& acquisition,
                               const std::vector<Point>& good, Random& random,
                               const SearchSize& size);

}  // namespace athanor::tune
