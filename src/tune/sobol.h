// A Sobol sequence (Sobol 1967) in any number of dimensions, scrambled by Owen's nested method
// (1995). Direction numbers are found once, by construction: primitive polynomials in order of
// degree, starting values chosen so that pairs of near dimensions fill a square evenly. That aim is
// Joe & Kuo's (2008); the search for them is ours, so that no table of numbers is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace athanor::tune {

// Coordinate `dimension` of point `index`, as a 32-bit fraction, not scrambled.
uint32_t SobolBits(size_t dimension, uint32_t index);
// In (0, 1), scrambled by `key`; the same key keeps the points of one sequence together.
double ScrambledSobol(size_t dimension, uint32_t index, uint64_t key);

}  // namespace athanor::tune
