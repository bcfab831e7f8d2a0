// A Gaussian process over the unit cube with categories. Its kernel is a Matern-5/2 on the summed
// squared distances (one length scale per dimension) mixed with the mean of one-dimensional
// Materns, for the separate effect of each parameter. Numeric dimensions are transformed by a
// Kumaraswamy warp, categories count by mismatch. Hyper-parameters are the maximum of the posterior
// under normal priors on their logarithms, found with analytic gradients.
//
// Follows Rasmussen & Williams 2006 (algorithm 2.1, gradients of section 5.4), Snoek et al. 2012
// (this kernel) and 2014 (warps; here with Kumaraswamy's distribution instead of the beta, because
// it needs no integral), Duvenaud et al. 2011 (the additive part, their first order), Hvarfner et
// al. 2024 (length scales that grow with the root of the dimensions) and Ginsbourger et al. 2010 (a
// running trial counts with its predicted value: the kriging believer).
//
// Values are expected centred and scaled (mean 0, deviation 1). Deterministic; not thread-safe.
// Memory: about 8 matrices of capacity x capacity.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/gp/factor.h"
#include "tune/lanes.h"

namespace athanor::tune {

// Coordinates: [0, 1] for a numeric dimension, an index for a categorical one.
using Point = std::vector<double>;

// All hyper-parameters: logs of length scales, of variance and noise, the logit of the additive
// part's share, then logs of the warps' a and b by numeric dimension.
using Theta = std::vector<double>;

struct Prediction {
  double mean = 0;
  double deviation = 0;  // of the function, without the noise
};

struct PredictionSlope {
  Prediction at;
  std::vector<double> mean;  // by coordinate; 0 for categories
  std::vector<double> deviation;
};

struct FitOptions {
  size_t evaluations = 40;
  bool warped = true;    // otherwise the warps stay neutral
  bool additive = true;  // else the additive part has no share
  bool smooth = false;   // the data are steps: avoid short length scales and little noise
};

class Gp {
 public:
  // Room for `capacity` points, including fantasies.
  Gp(std::vector<char> categorical, size_t capacity);

  // Replaces the data. Sizes agree and are below the capacity.
  void SetData(const std::vector<Point>& x, const std::vector<double>& y);

  Theta PriorCentre(const FitOptions& options) const;
  // Minus the log posterior of theta, with its gradient. 1e10 if the matrix is not usable.
  double Objective(const Theta& theta, std::vector<double>& gradient);
  struct Fitted {
    Theta theta;
    double value = 0;
  };
  Fitted Fit(const Theta& start, const FitOptions& options);

  // Conditions on the data under theta; false (and unusable) only for broken numbers.
  bool Condition(const Theta& theta);
  // Adds a point at its own predicted mean: the mean stays, the deviation around it shrinks.
  void Fantasise(const Point& x);

  void Predict(const std::vector<Point>& x, std::vector<Prediction>& out);
  void PredictWithSlope(const Point& x, PredictionSlope& out);
  size_t size() const { return factor_.size(); }

 private:
  struct Warp {
    double a = 1, b = 1;
  };
  struct Parts {  // theta as the kernel uses it
    std::vector<double> inverse_length;
    std::vector<Warp> warps;  // by dimension
    double variance = 1, noise = 0, share = 0;
  };

  // A point as the kernel sees it: coordinates warped, divided by the length scale; and those of
  // the additive part.
  struct Placed {
    std::vector<double> z;
    std::vector<Place> alone;
  };

  Parts PartsOf(const Theta& theta) const;
  void PlaceData(const Parts& parts);
  void PlacePoint(const Point& x, Placed& out, double* slopes) const;
  void PlacedRow(size_t i, Placed& out) const;  // of the data
  Line LineOf(size_t d) const;
  // Kernel of one placed point against the first n placed ones, without the variance: the joint
  // part and its h, and the additive part. `joint` is overwritten, so are the others if given.
  void KernelRow(const Parts& parts, const Placed& at, size_t n, double* joint, double* h,
                 double* additive) const;
  bool BuildMatrix(const Parts& parts);
  void AddKernelGradient(const Parts& parts, std::vector<double>& gradient);
  void AddWarpGradient(const Parts& parts, const std::vector<double>& by_place,
                       std::vector<double>& gradient) const;
  double AddPriors(const Theta& theta, std::vector<double>& gradient) const;
  // The mixed row, padding zeroed.
  void MixedRow(const Placed& at, double* k, double* h, double* scratch) const;

  const Lanes& lanes_;
  std::vector<char> categorical_;
  std::vector<size_t> numeric_;
  size_t dimensions_;
  bool smooth_ = false;  // as the last fit's options had it
  double stretch_;       // of distances in the additive part
  double reach_;         // the same times sqrt(5), as lanes want them
  Factor factor_;
  size_t stride_;
  size_t n_ = 0;                           // observed
  std::vector<double> x_, z_;              // by dimension: coordinates; placed
  std::vector<double> alone_, up_, down_;  // placed, for the additive part
  std::vector<double> y_, alpha_;
  std::vector<double> joint_, h_, additive_, sum_, inverse_;  // matrices of the fit
  Parts parts_;
};

}  // namespace athanor::tune
