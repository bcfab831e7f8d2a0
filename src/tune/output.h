// How observed values become what a Gaussian process likes: the bad tail clipped, then bent
// towards a normal distribution (Yeo-Johnson), then centred and scaled. Order is kept.
#pragma once

#include <vector>

namespace athanor::tune {

// Finite values in; all zeros when they are equal.
std::vector<double> WarpOutputs(std::vector<double> values);

}  // namespace athanor::tune
