// How observed values are prepared for a Gaussian process: the bad tail is clipped, then the values
// are transformed towards a normal distribution, then centred and scaled. The order stays. Follows
// Yeo & Johnson 2000, as HEBO does (Cowen-Rivers et al. 2022); where the tail is cut is ours.
#pragma once

#include <vector>

namespace athanor::tune {

// Finite values in; all zeros when they are equal.
std::vector<double> WarpOutputs(std::vector<double> values);

}  // namespace athanor::tune
