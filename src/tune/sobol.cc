#include "tune/sobol.h"

#include <array>
#include <bit>

#include "base/exec/mutex.h"
#include "tune/random.h"

namespace athanor::tune {
namespace {

constexpr int kBits = 32;
using Directions = std::array<uint32_t, kBits>;

// x^e mod p over GF(2); p has degree `degree`.
uint64_t PowerOfX(uint64_t e, uint64_t p, int degree) {
  const auto multiply = [&](uint64_t a, uint64_t b) {
    uint64_t out = 0;
    for (; b; b >>= 1) {
      if (b & 1) out ^= a;
      a <<= 1;
      if (a >> degree & 1) a ^= p;
    }
    return out;
  };
  uint64_t result = 1, base = degree == 1 ? (uint64_t{2} ^ p) : 2;
  for (; e; e >>= 1) {
    if (e & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

// Primitive: x has the full order 2^degree - 1. To that power it is 1; to the power of the order
// divided by one of its primes, it is not.
bool Primitive(uint64_t p, int degree) {
  const uint64_t order = (uint64_t{1} << degree) - 1;
  if (PowerOfX(order, p, degree) != 1) return false;
  uint64_t rest = order;
  for (uint64_t prime = 2; prime <= rest; ++prime) {
    if (rest % prime) continue;
    while (rest % prime == 0) rest /= prime;
    if (order / prime < order && order / prime > 0 && order != prime &&
        PowerOfX(order / prime, p, degree) == 1) {
      return false;
    }
  }
  return true;
}

// Sobol's recurrence: direction numbers beyond the degree follow from those before.
Directions Expand(uint64_t p, int degree, const std::vector<uint32_t>& start) {
  Directions v{};
  for (int i = 0; i < kBits; ++i) {
    if (i < degree) {
      v[static_cast<size_t>(i)] = start[static_cast<size_t>(i)] << (kBits - 1 - i);
      continue;
    }
    uint32_t next = v[static_cast<size_t>(i - degree)];
    next ^= next >> degree;
    for (int k = 1; k < degree; ++k) {
      if (p >> (degree - k) & 1) next ^= v[static_cast<size_t>(i - k)];
    }
    v[static_cast<size_t>(i)] = next;
  }
  return v;
}

// In Gray code order (Antonov & Saleev 1979): the same points in each block of 2^k.
uint32_t Bits(const Directions& v, uint32_t index) {
  uint32_t gray = index ^ (index >> 1), out = 0;
  for (int i = 0; gray; ++i, gray >>= 1) {
    if (gray & 1) out ^= v[static_cast<size_t>(i)];
  }
  return out;
}

// Empty cells of an 8 x 8 square after 64 points of two dimensions; 0 is best. Poor starting values
// put the points on a few diagonals.
int Holes(const Directions& a, const Directions& b) {
  uint64_t filled = 0;
  for (uint32_t i = 0; i < 64; ++i)
    filled |= uint64_t{1} << ((Bits(a, i) >> 29) * 8 + (Bits(b, i) >> 29));
  return 64 - std::popcount(filled);
}

class Table {
 public:
  const Directions& Of(size_t dimension) {
    MutexLock lock(mutex_);
    if (rows_.empty()) {
      rows_.reserve(2048);  // references stay good
      Directions first{};
      for (int i = 0; i < kBits; ++i) first[static_cast<size_t>(i)] = 1u << (kBits - 1 - i);
      rows_.push_back(first);
    }
    while (rows_.size() <= dimension) Grow();
    return rows_[dimension];
  }

 private:
  void Grow() REQUIRES(mutex_) {
    do {
      polynomial_ += 2;  // the constant term is 1
      if (polynomial_ >> (degree_ + 1)) {
        ++degree_;
        polynomial_ = (uint64_t{1} << degree_) + 1;
      }
    } while (!Primitive(polynomial_, degree_));
    // Of 24 random starts, the one that goes best with the 12 dimensions before it. The seed is of
    // the dimension alone: the sequence is the same everywhere.
    Random random(0x50b01, rows_.size(), 0);
    Directions best{};
    int least = 1 << 20;
    for (int attempt = 0; attempt < 24 && least > 0; ++attempt) {
      std::vector<uint32_t> start;
      // The i-th is odd and below 2^(i+1): Sobol's condition for one point in each interval.
      for (int i = 0; i < degree_; ++i) start.push_back(random.Below(1u << i) * 2 + 1);
      const auto candidate = Expand(polynomial_, degree_, start);
      int holes = 0;
      for (size_t back = 1; back <= 12 && back <= rows_.size(); ++back) {
        holes += Holes(candidate, rows_[rows_.size() - back]);
      }
      if (holes < least) {
        least = holes;
        best = candidate;
      }
    }
    rows_.push_back(best);
  }

  Mutex mutex_;
  std::vector<Directions> rows_ GUARDED_BY(mutex_);
  uint64_t polynomial_ GUARDED_BY(mutex_) = 1;  // Grow() starts at x + 1
  int degree_ GUARDED_BY(mutex_) = 1;
};

Table& TheTable() {
  static Table table;  // a pure function's memo
  return table;
}

}  // namespace

uint32_t SobolBits(size_t dimension, uint32_t index) {
  // From dimension 2000 on, directions repeat; each dimension is scrambled in its own way.
  return Bits(TheTable().Of(dimension % 2000), index);
}

double ScrambledSobol(size_t dimension, uint32_t index, uint64_t key) {
  const uint32_t plain = SobolBits(dimension, index);
  uint32_t out = 0;
  const std::array<uint32_t, 2> words = {static_cast<uint32_t>(key),
                                         static_cast<uint32_t>(key >> 32)};
  for (uint32_t bit = 0; bit < kBits; ++bit) {
    // A bit flips by a coin that all points with the same higher bits share. The coin is a hash of
    // them, as Burley 2020 does, because Owen's tree of coins would not fit in memory.
    const uint32_t above = bit == 0 ? 0 : plain >> (kBits - bit);
    const uint32_t coin = Philox({above, bit, static_cast<uint32_t>(dimension), 0x0b3e}, words)[0];
    out |= (((plain >> (kBits - 1 - bit)) ^ coin) & 1) << (kBits - 1 - bit);
  }
  return (static_cast<double>(out) + 0.5) * 0x1p-32;  // the middle: neither 0 nor 1
}

}  // namespace athanor::tune
