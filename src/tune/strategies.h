// The strategies behind Ask(). Each proposes a point of the space; Ask() decodes it, and rejects
// what was tried before.
#pragma once

#include "tune/random.h"
#include "tune/strategy.h"

namespace athanor::tune {

// Streams of randomness of one ask.
enum Stream : uint32_t { kDraw = 1, kSearch, kScramble, kFallback, kParzen };

// Uniform over the space's scales.
Point RandomPoint(const Space& space, Random& random);
// The index-th point of the seed's Sobol sequence.
Point SobolPoint(const Space& space, uint64_t seed, uint64_t index);

// The grid's next cell, or none if all are done.
std::optional<Assignment> GridValues(const Space& space, const History& history);

// Points in order of preference, best first; empty before there is enough to learn from.
std::vector<Point> BayesPoints(const Space& space, const Settings& settings, const History& history,
                               Memory& memory);
std::vector<Point> TpePoints(const Space& space, const Settings& settings, const History& history);

}  // namespace athanor::tune
