#include "tune/gp/gp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/gp/acquisition.h"
#include "tune/gp/lbfgs.h"
#include "tune/output.h"
#include "tune/random.h"

namespace athanor::tune {
namespace {

struct Case {
  std::vector<char> categorical = {0, 0, 1, 0};
  std::vector<Point> x;
  std::vector<double> y;
};

Case MakeCase(size_t n) {
  Case out;
  Random random(5, 0, 0);
  for (size_t i = 0; i < n; ++i) {
    Point p = {random.Uniform(), random.Uniform(), static_cast<double>(random.Below(3)),
               random.Uniform()};
    out.y.push_back(std::sin(6 * p[0]) + p[1] * p[1] + 0.3 * p[2] + 0.05 * random.Normal());
    out.x.push_back(std::move(p));
  }
  out.y = WarpOutputs(out.y);
  return out;
}

Theta Somewhere(const Gp& gp, bool additive) {
  FitOptions options;
  options.additive = additive;
  Theta theta = gp.PriorCentre(options);
  Random random(8, 0, 0);
  for (double& t : theta) {
    if (t > -20) t += 0.3 * random.Normal();
  }
  return theta;
}

TEST(Gp, GradientIsTheObjectivesDerivative) {
  for (bool additive : {true, false}) {
    const auto c = MakeCase(23);
    Gp gp(c.categorical, 23);
    gp.SetData(c.x, c.y);
    Theta theta = Somewhere(gp, additive);
    std::vector<double> gradient, ignored;
    gp.Objective(theta, gradient);
    for (size_t i = 0; i < theta.size(); ++i) {
      if (theta[i] < -20) continue;  // the additive part left out
      auto up = theta, down = theta;
      up[i] += 1e-5;
      down[i] -= 1e-5;
      const double slope = (gp.Objective(up, ignored) - gp.Objective(down, ignored)) / 2e-5;
      EXPECT_NEAR(gradient[i], slope, 1e-4 * std::max(1.0, std::fabs(slope))) << i;
    }
  }
}

TEST(Gp, AcquisitionSlopeIsItsDerivative) {
  const auto c = MakeCase(30);
  Gp gp(c.categorical, 40), labels(c.categorical, 40);
  gp.SetData(c.x, c.y);
  std::vector<double> signs;
  for (const auto& p : c.x) signs.push_back(p[0] > 0.5 ? -1.0 : 1.0);
  labels.SetData(c.x, signs);
  ASSERT_TRUE(gp.Condition(Somewhere(gp, true)));
  ASSERT_TRUE(labels.Condition(Somewhere(labels, false)));
  gp.Fantasise({0.4, 0.4, 1, 0.4});
  Acquisition acquisition(gp, {0, 1, 2, 3}, -1.2);
  acquisition.Feasible(labels, 0.1, 0.9, 0.3);
  const Point at = {0.31, 0.62, 1, 0.45};
  std::vector<double> slope, value;
  EXPECT_NEAR(acquisition.ValueWithSlope(at, slope), (acquisition.Values({at}, value), value[0]),
              1e-9);
  for (size_t d : {0, 1, 3}) {
    auto up = at, down = at;
    up[d] += 1e-6;
    down[d] -= 1e-6;
    acquisition.Values({up, down}, value);
    EXPECT_NEAR(slope[d], (value[0] - value[1]) / 2e-6, 1e-4 * std::max(1.0, std::fabs(slope[d])));
  }
}

TEST(Gp, FollowsItsData) {
  const auto c = MakeCase(40);
  Gp gp(c.categorical, 60);
  gp.SetData(c.x, c.y);
  const FitOptions options;
  const auto fitted = gp.Fit(gp.PriorCentre(options), options);
  ASSERT_TRUE(gp.Condition(fitted.theta));
  std::vector<Prediction> at;
  gp.Predict(c.x, at);
  double squares = 0;
  for (size_t i = 0; i < c.x.size(); ++i) squares += std::pow(at[i].mean - c.y[i], 2);
  EXPECT_LT(std::sqrt(squares / 40), 0.25);
}

TEST(Gp, AFantasyKeepsTheMeanAndShrinksTheDeviation) {
  const auto c = MakeCase(20);
  Gp gp(c.categorical, 30);
  gp.SetData(c.x, c.y);
  ASSERT_TRUE(gp.Condition(gp.PriorCentre({})));
  const Point here = {0.5, 0.1, 2, 0.9}, there = {0.45, 0.15, 2, 0.85};
  std::vector<Prediction> before, after;
  gp.Predict({here, there}, before);
  gp.Fantasise(here);
  gp.Predict({here, there}, after);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(after[i].mean, before[i].mean, 1e-9);
    EXPECT_LT(after[i].deviation, before[i].deviation);
  }
}

TEST(Gp, TheSameAsConditioningOnAllAtOnce) {
  const auto c = MakeCase(21);
  Gp all(c.categorical, 30), grown(c.categorical, 30);
  const Theta theta = Somewhere(all, true);
  all.SetData(c.x, c.y);
  grown.SetData({c.x.begin(), c.x.begin() + 18}, {c.y.begin(), c.y.begin() + 18});
  ASSERT_TRUE(all.Condition(theta));
  ASSERT_TRUE(grown.Condition(theta));
  for (size_t i = 18; i < 21; ++i) grown.Fantasise(c.x[i]);
  std::vector<Prediction> a, b;
  all.Predict({{0.2, 0.3, 0, 0.4}, {0.9, 0.1, 1, 0.7}}, a);
  grown.Predict({{0.2, 0.3, 0, 0.4}, {0.9, 0.1, 1, 0.7}}, b);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(a[i].deviation, b[i].deviation, 1e-9);
}

TEST(Minimise, FindsTheBottomOfACurvedValleyAndStaysInTheBox) {
  const Smooth rosenbrock = [](const std::vector<double>& x, std::vector<double>& g) {
    const double a = x[1] - x[0] * x[0], b = 1 - x[0];
    g = {-400 * a * x[0] - 2 * b, 200 * a};
    return 100 * a * a + b * b;
  };
  MinimiseOptions options;
  options.evaluations = 300;
  options.tolerance = 0;
  const auto free = Minimise(rosenbrock, {-1.2, 1}, {{-5, -5}, {5, 5}}, options);
  EXPECT_LT(free.value, 1e-6);
  const auto boxed = Minimise(rosenbrock, {-1.2, 1}, {{-5, -5}, {0.5, 5}}, options);
  EXPECT_NEAR(boxed.x[0], 0.5, 1e-3);
  EXPECT_NEAR(boxed.value, 0.25, 1e-2);
}

TEST(Outputs, KeepTheirOrderWhateverTheirSize) {
  const std::vector<double> values = {3, -1e308, 7, 1e308, 5e-300, -2, 4, 1, 0, 2};
  const auto bent = WarpOutputs(values);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(bent[i]));
    for (size_t j = 0; j < values.size(); ++j) {
      if (values[i] < values[j]) {
        EXPECT_LE(bent[i], bent[j]);
      }
    }
  }
  EXPECT_EQ(WarpOutputs({4, 4, 4}), (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace athanor::tune
