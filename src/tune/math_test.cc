#include "tune/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "tune/lanes.h"
#include "tune/random.h"
#include "tune/sobol.h"

namespace athanor::tune {
namespace {

TEST(Math, AgreesWithTheLibraryToAFewUnitsInTheLastPlace) {
  Random random(1, 0, 0);
  for (int i = 0; i < 20'000; ++i) {
    const double x = (random.Uniform() - 0.5) * 1400;
    EXPECT_NEAR(Exp(x) / std::exp(x), 1.0, 1e-15) << x;
    const double y = std::exp((random.Uniform() - 0.5) * 600);
    EXPECT_NEAR(Log(y), std::log(y), 1e-15 * std::max(1.0, std::fabs(std::log(y)))) << y;
    const double z = (random.Uniform() - 0.5) * std::exp(-30 * random.Uniform());
    EXPECT_NEAR(Log1p(z) / std::log1p(z), 1.0, 1e-14) << z;
    EXPECT_NEAR(Expm1(z) / std::expm1(z), 1.0, 1e-14) << z;
  }
  EXPECT_EQ(Exp(-800), 0.0);
  EXPECT_EQ(Exp(0), 1.0);
  EXPECT_EQ(Log(1), 0.0);
  EXPECT_TRUE(std::isinf(Log(0)));
  EXPECT_TRUE(std::isnan(Log(-1)));
}

TEST(Math, NormalTailsAreGoodFarOut) {
  for (double z = -35; z < 8; z += 0.0625) {
    const double exact = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(NormalCdf(z) / exact, 1.0, 1e-12) << z;
    EXPECT_NEAR(LogNormalCdf(z), std::log(exact), 1e-11 * std::max(1.0, z * z)) << z;
  }
  for (double p : {1e-12, 1e-5, 0.01, 0.2, 0.5, 0.7, 0.999}) {
    EXPECT_NEAR(NormalCdf(NormalQuantile(p)) / p, 1.0, 1e-7) << p;
  }
}

TEST(Math, LogImprovementIsSmoothAndItsSlopeIsItsDerivative) {
  for (double z = -1500; z < 6; z += z < -40 ? 13.7 : 0.37) {
    const double step = 1e-6 * std::max(1.0, std::fabs(z));
    const double up = LogExpectedImprovement(z + step).value;
    const double down = LogExpectedImprovement(z - step).value;
    const auto here = LogExpectedImprovement(z);
    EXPECT_NEAR((up - down) / (2 * step) / here.slope, 1.0, 1e-4) << z;
    EXPECT_LT(down, up) << z;
  }
}

TEST(Lanes, BothBuildsGiveTheSameBytes) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has one of them only";
  Random random(3, 0, 0);
  constexpr size_t n = 64;
  std::vector<double> a(4 * n), b(n), plain(4 * n), wide(4 * n), h1(n), h2(n);
  for (auto* each : {&a, &b}) {
    for (double& x : *each) x = 3 * random.Uniform();
  }
  const auto same = [&](const char* what) {
    EXPECT_EQ(std::memcmp(plain.data(), wide.data(), plain.size() * sizeof(double)), 0) << what;
  };
  const auto both = [&](auto call, const char* what) {
    plain = wide = a;
    call(kPlainLanes, plain.data());
    call(kAvx2Lanes, wide.data());
    same(what);
  };
  both([&](const Lanes& l, double* out) { out[0] = l.dot(a.data(), b.data(), n); }, "dot");
  both([&](const Lanes& l, double* out) { l.dot4(a.data(), n, b.data(), n, out); }, "dot4");
  both([&](const Lanes& l, double* out) { l.axpy(out, b.data(), 0.3, n); }, "axpy");
  both([&](const Lanes& l, double* out) { l.add_squares(out, b.data(), 0.3, n); }, "squares");
  both([&](const Lanes& l, double* out) { l.add_mismatch(out, b.data(), b[3], 0.7, n); }, "other");
  both([&](const Lanes& l, double* out) { l.matern(b.data(), out, out + n, n); }, "matern");
  std::vector<double> up, down;
  for (double x : b) {
    up.push_back(Exp(x));
    down.push_back(Exp(-x));
  }
  const Line line = {b.data(), up.data(), down.data()};
  const Place place = {0.7, Exp(0.7), Exp(-0.7)};
  both([&](const Lanes& l, double* out) { l.add_matern(out, line, place, 0.6, n); }, "one");
  both([&](const Lanes& l,
           double* out) { l.matern_slopes(a.data(), a.data() + n, line, place, n, out); },
       "slopes");
  both([&](const Lanes& l, double* out) { l.multiply(out, a.data(), b.data(), n); }, "multiply");
}

TEST(Random, DependsOnSeedAskAndStreamAlone) {
  // The published test vector of Philox 4x32-10 for zeros.
  const auto zeros = Philox({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(zeros[0], 0x6627e8d5u);
  EXPECT_EQ(zeros[1], 0xe169c58du);
  Random a(7, 3, 1), again(7, 3, 1), other(7, 4, 1), stream(7, 3, 2);
  const double first = a.Uniform();
  EXPECT_EQ(first, again.Uniform());
  EXPECT_NE(first, other.Uniform());
  EXPECT_NE(first, stream.Uniform());
}

TEST(Sobol, EveryDimensionFillsItsEighthsOnceInEightPoints) {
  for (size_t d = 0; d < 600; d += d < 40 ? 1 : 37) {
    std::set<int> plain, scrambled;
    for (uint32_t i = 0; i < 8; ++i) {
      plain.insert(static_cast<int>(SobolBits(d, i) >> 29));
      scrambled.insert(static_cast<int>(ScrambledSobol(d, i, 99) * 8));
    }
    EXPECT_EQ(plain.size(), 8u) << d;
    EXPECT_EQ(scrambled.size(), 8u) << d;
  }
}

}  // namespace
}  // namespace athanor::tune
