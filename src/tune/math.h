// Our own exp, log and related functions, so that a suggestion has the same bytes on every x86-64
// machine: the C library picks code by processor (with or without fused multiply-add), and its last
// digit differs. Errors stay below 4 units in the last place, those of NormalCdf and the log of
// expected improvement below 1e-12 (relative). Pure; sqrt is exact by IEEE and std's.
#pragma once

namespace athanor::tune {

double Exp(double x);    // 0 below -708, the largest finite's neighbourhood above 709
double Log(double x);    // of a positive, normal number; -inf for 0
double Log1p(double x);  // x > -1
double Expm1(double x);
double Pow(double base, double exponent);  // base >= 0

double NormalCdf(double z);
double NormalQuantile(
    double p);                  // 0 < p < 1; relative error below 1e-8: for drawing, not for tests
double LogNormalCdf(double z);  // good far into the left tail

// log(phi(z) + z Phi(z)): the log of the expected improvement of a standard normal; and its
// derivative by z.
struct LogImprovement {
  double value;
  double slope;
};
LogImprovement LogExpectedImprovement(double z);

}  // namespace athanor::tune
