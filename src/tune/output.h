// How observed values are prepared for a Gaussian process: the bad tail is clipped, then the values
// are transformed towards a normal distribution (Yeo-Johnson), then centred and scaled. The order
// stays.
#pragma once

#include <vector>

namespace athanor::tune {

// Finite values in; all zeros when they are equal.
std::vector<double> WarpOutputs(std::vector<double> values);

}  // namespace athanor::tune
