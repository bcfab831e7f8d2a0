// Counter-based randomness (Philox 4x32 in ten rounds, Salmon et al. 2011): what is drawn depends
// on (seed, k, stream) and on how many numbers were drawn before, never on the state of an earlier
// ask.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace athanor::tune {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Random {
 public:
  Random(uint64_t seed, uint64_t k, uint32_t stream);

  uint32_t Next();
  double Uniform();            // (0, 1), 52 bits
  uint32_t Below(uint32_t n);  // 0 .. n-1; n > 0
  double Normal();

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int left_ = 0;
};

}  // namespace athanor::tune
