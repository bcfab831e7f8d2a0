#include "tune/random.h"

#include <cmath>

#include "tune/math.h"

namespace athanor::tune {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Random::Random(uint64_t seed, uint64_t k, uint32_t stream)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, stream, static_cast<uint32_t>(k), static_cast<uint32_t>(k >> 32)} {}

uint32_t Random::Next() {
  if (left_ == 0) {
    block_ = Philox(counter_, key_);
    ++counter_[0];
    left_ = 4;
  }
  return block_[static_cast<size_t>(--left_)];
}

double Random::Uniform() {
  // The half keeps it off 0 and 1, of which logarithms and quantiles are infinite.
  const uint64_t bits = (uint64_t{Next()} << 20) ^ (Next() >> 12);
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// By multiplication: uneven by at most one in 2^32 / n, and always one number drawn.
uint32_t Random::Below(uint32_t n) { return static_cast<uint32_t>((uint64_t{Next()} * n) >> 32); }

// Marsaglia's polar method. The second number of its pair is not kept, so that what comes next
// depends on the counter alone.
double Random::Normal() {
  for (;;) {
    const double x = 2 * Uniform() - 1, y = 2 * Uniform() - 1, s = x * x + y * y;
    if (s < 1 && s > 0) return x * std::sqrt(-2 * Log(s) / s);
  }
}

}  // namespace athanor::tune
