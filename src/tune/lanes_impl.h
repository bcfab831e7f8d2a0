// The text that lanes.cc and lanes_avx2.cc compile with different options. Nothing of the standard
// library may be used here: an inline function of it, compiled with AVX2, could be the copy that
// the linker keeps for all callers.
#pragma once

#include "tune/lanes.h"

namespace athanor::tune {
namespace {

typedef double Wide __attribute__((vector_size(32)));
typedef long WideInt __attribute__((vector_size(32)));

inline Wide Load(const double* p) {
  Wide v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void Store(double* p, Wide v) { __builtin_memcpy(p, &v, sizeof v); }
inline Wide All(double x) { return Wide{x, x, x, x}; }
// Always in this order: it decides how the sum is rounded.
inline double Sum(Wide a, Wide b) {
  const Wide s = a + b;
  return (s[0] + s[2]) + (s[1] + s[3]);
}

double Dot(const double* a, const double* b, size_t n) {
  Wide s = All(0), t = All(0);
  for (size_t i = 0; i < n; i += kLane) {
    s += Load(a + i) * Load(b + i);
    t += Load(a + i + 4) * Load(b + i + 4);
  }
  return Sum(s, t);
}

void Dot4(const double* a, size_t stride, const double* b, size_t n, double* out) {
  Wide s0 = All(0), s1 = All(0), s2 = All(0), s3 = All(0);
  Wide t0 = All(0), t1 = All(0), t2 = All(0), t3 = All(0);
  const double *a1 = a + stride, *a2 = a1 + stride, *a3 = a2 + stride;
  for (size_t i = 0; i < n; i += kLane) {
    const Wide x = Load(b + i), y = Load(b + i + 4);
    s0 += Load(a + i) * x;
    t0 += Load(a + i + 4) * y;
    s1 += Load(a1 + i) * x;
    t1 += Load(a1 + i + 4) * y;
    s2 += Load(a2 + i) * x;
    t2 += Load(a2 + i + 4) * y;
    s3 += Load(a3 + i) * x;
    t3 += Load(a3 + i + 4) * y;
  }
  out[0] = Sum(s0, t0);
  out[1] = Sum(s1, t1);
  out[2] = Sum(s2, t2);
  out[3] = Sum(s3, t3);
}

void Axpy(double* y, const double* x, double factor, size_t n) {
  const Wide f = All(factor);
  for (size_t i = 0; i < n; i += 4) Store(y + i, Load(y + i) + f * Load(x + i));
}

void AddSquares(double* acc, const double* x, double centre, size_t n) {
  const Wide c = All(centre);
  for (size_t i = 0; i < n; i += 4) {
    const Wide d = Load(x + i) - c;
    Store(acc + i, Load(acc + i) + d * d);
  }
}

void AddMismatch(double* acc, const double* x, double centre, double weight, size_t n) {
  const Wide c = All(centre);
  const WideInt w = reinterpret_cast<WideInt>(All(weight));
  for (size_t i = 0; i < n; i += 4) {
    const WideInt differs = reinterpret_cast<WideInt>(Load(x + i) != c);
    Store(acc + i, Load(acc + i) + reinterpret_cast<Wide>(differs & w));
  }
}

double SumMismatch(const double* g, const double* x, double centre, size_t n) {
  const Wide c = All(centre);
  Wide s = All(0), t = All(0);
  for (size_t i = 0; i < n; i += kLane) {
    const WideInt p = reinterpret_cast<WideInt>(Load(x + i) != c);
    const WideInt q = reinterpret_cast<WideInt>(Load(x + i + 4) != c);
    s += reinterpret_cast<Wide>(p & reinterpret_cast<WideInt>(Load(g + i)));
    t += reinterpret_cast<Wide>(q & reinterpret_cast<WideInt>(Load(g + i + 4)));
  }
  return Sum(s, t);
}

// e^-x for x >= 0: the steps of Exp() in math.cc, with one term less.
inline Wide ExpOfMinus(Wide x) {
  const Wide most = All(700.0);
  const WideInt far = reinterpret_cast<WideInt>(x > most);
  x = reinterpret_cast<Wide>((~far & reinterpret_cast<WideInt>(x)) |
                             (far & reinterpret_cast<WideInt>(most)));
  x = -x;
  const Wide shifted = x * All(1.44269504088896340736) + All(0x1.8p52);
  const Wide k = shifted - All(0x1.8p52);
  const Wide r = (x - k * All(0x1.62e42fefa0000p-1)) - k * All(0x1.cf79abc9e3b3ap-40);
  Wide p = All(1.0 / 479001600.0);
  p = p * r + All(1.0 / 39916800.0);
  p = p * r + All(1.0 / 3628800.0);
  p = p * r + All(1.0 / 362880.0);
  p = p * r + All(1.0 / 40320.0);
  p = p * r + All(1.0 / 5040.0);
  p = p * r + All(1.0 / 720.0);
  p = p * r + All(1.0 / 120.0);
  p = p * r + All(1.0 / 24.0);
  p = p * r + All(1.0 / 6.0);
  p = p * r + All(0.5);
  p = p * r + All(1.0);
  p = p * r + All(1.0);
  const WideInt scale = (reinterpret_cast<WideInt>(shifted) + 1023) << 52;
  return p * reinterpret_cast<Wide>(scale);
}

inline Wide Root(Wide x) {
  return Wide{__builtin_sqrt(x[0]), __builtin_sqrt(x[1]), __builtin_sqrt(x[2]),
              __builtin_sqrt(x[3])};
}

void Matern(const double* r2, double* k, double* h, size_t n) {
  for (size_t i = 0; i < n; i += 4) {
    const Wide q = All(5.0) * Load(r2 + i);
    const Wide r = Root(q);
    const Wide e = ExpOfMinus(r);
    const Wide near = (All(1.0) + r) * e;
    Store(k + i, near + q * All(1.0 / 3.0) * e);
    if (h) Store(h + i, All(5.0 / 3.0) * near);
  }
}

inline Wide Smaller(Wide a, Wide b) {
  const WideInt first = reinterpret_cast<WideInt>(a < b);
  return reinterpret_cast<Wide>((first & reinterpret_cast<WideInt>(a)) |
                                (~first & reinterpret_cast<WideInt>(b)));
}

// e^-|x - centre|, and |x - centre| in `r`.
inline Wide Decay(const Line& x, const Place& centre, size_t i, Wide* r) {
  const WideInt sign = reinterpret_cast<WideInt>(All(-0.0));
  const Wide d = Load(x.x + i) - All(centre.x);
  *r = reinterpret_cast<Wide>(~sign & reinterpret_cast<WideInt>(d));
  return Smaller(Load(x.up + i) * All(centre.down), Load(x.down + i) * All(centre.up));
}

void AddMatern(double* acc, const Line& x, const Place& centre, double weight, size_t n) {
  const Wide w = All(weight);
  for (size_t i = 0; i < n; i += 4) {
    Wide r;
    const Wide e = Decay(x, centre, i, &r);
    const Wide k = (All(1.0) + r + r * r * All(1.0 / 3.0)) * e;
    Store(acc + i, Load(acc + i) + w * k);
  }
}

void MaternSlopes(const double* m0, const double* m1, const Line& x, const Place& centre, size_t n,
                  double* out) {
  Wide s = All(0), t = All(0);
  for (size_t i = 0; i < n; i += 4) {
    Wide r;
    const Wide e = Decay(x, centre, i, &r);
    const Wide pull = (All(1.0) + r) * e * (All(centre.x) - Load(x.x + i));
    s += Load(m0 + i) * pull;
    t += Load(m1 + i) * pull;
  }
  out[0] = 5.0 / 3.0 * Sum(s, All(0));
  out[1] = 5.0 / 3.0 * Sum(t, All(0));
}

void Multiply(double* out, const double* a, const double* b, size_t n) {
  for (size_t i = 0; i < n; i += 4) Store(out + i, Load(a + i) * Load(b + i));
}

constexpr Lanes kThese = {Dot,         Dot4,   Axpy,      AddSquares,   AddMismatch,
                          SumMismatch, Matern, AddMatern, MaternSlopes, Multiply};

}  // namespace
}  // namespace athanor::tune
