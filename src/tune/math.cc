#include "tune/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace athanor::tune {
namespace {

// ln 2 in two parts: a whole number times the first is exact (Cody & Waite 1980).
constexpr double kLn2High = 0x1.62e42fefa0000p-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr double kLogSqrt2Pi = 0.91893853320467274178;
constexpr double kInvSqrt2Pi = 0.39894228040143267794;

// (1 - Phi(x)) / phi(x) for x >= 3, by Laplace's continued fraction.
double MillsRatio(double x) {
  double tail = x;
  for (int k = 60; k >= 1; --k) tail = x + k / tail;
  return 1.0 / tail;
}

// Phi(z) - 1/2 for |z| <= 3: phi(z) (z + z^3/3 + z^5/15 + ...), all terms of one sign, so that
// nothing cancels (Marsaglia 2004).
double CentralCdf(double z) {
  double term = z, sum = z;
  for (int k = 3; k < 90; k += 2) {
    term *= z * z / k;
    sum += term;
  }
  return kInvSqrt2Pi * Exp(-0.5 * z * z) * sum;
}

}  // namespace

// e^x = 2^k e^r with |r| <= ln 2 / 2, the second by its Taylor series. Adding 1.5 * 2^52 rounds to
// a whole number and leaves it in the low bits, from where it is moved to the exponent.
double Exp(double x) {
  if (std::isnan(x)) return x;
  if (x < -708.0) return 0.0;
  if (x > 709.0) x = 709.0;
  const double shifted = x * 1.44269504088896340736 + 0x1.8p52;
  const double k = shifted - 0x1.8p52;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double p = 1.0 / 6227020800.0;
  for (double c :
       {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
        1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0}) {
    p = p * r + c;
  }
  return p * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

// log x = e log 2 + log m with m around 1, and log m = 2 artanh(f), whose series is short for a
// small f. The small terms are added first.
double Log(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0.70710678118654752440) {
    m *= 2;
    --exponent;
  }
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double p = 1.0 / 23.0;
  for (double c : {1.0 / 21.0, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0,
                   1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0}) {
    p = p * f2 + c;
  }
  return exponent * kLn2High + (exponent * kLn2Low + 2.0 * f * (f2 * p) + 2.0 * f);
}

// This and Expm1 are Kahan's: the rounding of u is the same in both factors, and cancels.
double Log1p(double x) {
  const double u = 1.0 + x;
  if (u == 1.0) return x;
  return Log(u) * (x / (u - 1.0));
}

double Expm1(double x) {
  if (x < -40) return -1.0;
  const double u = Exp(x);
  if (u == 1.0) return x;
  if (x > 40) return u;
  return (u - 1.0) * (x / Log(u));
}

double Pow(double base, double exponent) {
  if (exponent == 0) return 1.0;
  if (base == 0) return exponent > 0 ? 0.0 : std::numeric_limits<double>::infinity();
  return Exp(exponent * Log(base));
}

double NormalCdf(double z) {
  if (z > 3.0) return 1.0 - NormalCdf(-z);
  if (z < -3.0) return kInvSqrt2Pi * Exp(-0.5 * z * z) * MillsRatio(-z);
  return 0.5 + CentralCdf(z);
}

double LogNormalCdf(double z) {
  if (z < -3.0) return -0.5 * z * z - kLogSqrt2Pi + Log(MillsRatio(-z));
  return Log(NormalCdf(z));
}

double NormalQuantile(double p) {
  if (p > 0.5) return -NormalQuantile(1.0 - p);
  // A rough start from the tail's asymptote, then Newton's steps on log Phi, which is concave.
  const double t = std::sqrt(-2.0 * Log(p));
  double z = p < 0.1 ? -(t - (Log(t) + 0.9) / t) : (p - 0.5) * 2.5066282746310002;
  for (int i = 0; i < 5; ++i) {
    const double log_cdf = LogNormalCdf(z);
    const double slope = Exp(-0.5 * z * z - kLogSqrt2Pi - log_cdf);
    z -= (log_cdf - Log(p)) / slope;
  }
  return z;
}

LogImprovement LogExpectedImprovement(double z) {
  // Far below 0, phi and z Phi nearly cancel. Divided by phi, that is 1 - x mills; and before this
  // has too few digits left, its limit, 1 / x^2, is close enough.
  if (z < -3.0) {
    const double x = -z;
    if (x > 1000.0) return {-0.5 * x * x - kLogSqrt2Pi - 2.0 * Log(x), x + 2.0 / x};
    const double mills = MillsRatio(x);
    const double rest = 1.0 - x * mills;
    return {-0.5 * x * x - kLogSqrt2Pi + Log(rest), mills / rest};
  }
  const double cdf = NormalCdf(z);
  const double h = kInvSqrt2Pi * Exp(-0.5 * z * z) + z * cdf;
  return {Log(h), cdf / h};
}

}  // namespace athanor::tune
