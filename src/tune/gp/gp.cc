#include "tune/gp/gp.h"

#include <algorithm>
#include <cmath>

#include "tune/gp/lbfgs.h"
#include "tune/math.h"

namespace athanor::tune {
namespace {

constexpr double kLeastNoise = 1e-6;  // keeps the matrix positive definite if two points are equal
constexpr double kBroken = 1e10;      // more than any posterior: a line search steps back from it
constexpr double kEdge = 1e-6;        // warps have no finite slope at 0 and 1
constexpr double kNoShare = -30.0;    // the logit that stands for no additive part
constexpr double kRoot5 = 2.23606797749978969641;

// Of logarithms (a logit for the share). The values have deviation 1, so their variance is about 1.
struct Prior {
  double mean, deviation, low, high;
};
constexpr Prior kVariance = {0.0, 0.7, -3.0, 3.0};
constexpr Prior kNoise = {-4.6, 1.5, -13.8, 0.0};  // a hundredth of that variance; 1e-6 to 1
constexpr Prior kShare = {0.0, 1.5, -5.0, 5.0};    // half of it
constexpr Prior kWarp = {0.0, 0.4, -1.2, 1.2};     // none: a = b = 1

// Of data that are steps, which a smooth curve meets only within some noise.
constexpr Prior kStepNoise = {-2.5, 0.7, -4.6, 0.0};

// Points of a cube are apart by about the root of its dimensions: a length scale grows with that,
// from half a side in two dimensions.
Prior LengthPrior(size_t dimensions, bool smooth) {
  const double d = static_cast<double>(std::max<size_t>(dimensions, 2));
  const double centre = Log(0.5) + 0.5 * Log(d / 2);
  if (smooth) return {centre, 0.7, centre - 1.0, 3.5};
  return {centre, 1.0, -3.5, 3.5};
}

const Prior& NoisePrior(bool smooth) { return smooth ? kStepNoise : kNoise; }

// Kumaraswamy's distribution, 1 - (1 - u^a)^b, without losing digits near its ends.
double Bend(double u, double a, double b) { return -Expm1(b * Log1p(-Pow(u, a))); }

}  // namespace

Gp::Gp(std::vector<char> categorical, size_t capacity)
    : lanes_(BestLanes()),
      categorical_(std::move(categorical)),
      dimensions_(categorical_.size()),
      // Undoes, for one dimension alone, that length scales grow with the number of dimensions. Not
      // beyond 64: the shortest length scale is e^-3.5, so coordinates stay below
      // e^3.5 sqrt(5 * 64) = 592, and e^592 is finite.
      stretch_(std::sqrt(std::clamp(static_cast<double>(dimensions_) / 2, 1.0, 64.0))),
      reach_(kRoot5 * stretch_),
      factor_(capacity + 1),
      stride_(factor_.stride()) {
  for (size_t d = 0; d < dimensions_; ++d) {
    if (!categorical_[d]) numeric_.push_back(d);
  }
  x_.assign(Padded(dimensions_) * stride_, 0.0);
  z_ = alone_ = x_;
  up_ = down_ = x_;
  y_.assign(stride_, 0.0);
  alpha_ = y_;
}

void Gp::SetData(const std::vector<Point>& x, const std::vector<double>& y) {
  n_ = x.size();
  std::fill(x_.begin(), x_.end(), 0.0);
  std::fill(z_.begin(), z_.end(), 0.0);
  std::fill(y_.begin(), y_.end(), 0.0);
  for (size_t i = 0; i < n_; ++i) {
    for (size_t d = 0; d < dimensions_; ++d) {
      x_[d * stride_ + i] = categorical_[d] ? x[i][d] : std::clamp(x[i][d], kEdge, 1 - kEdge);
    }
    y_[i] = y[i];
  }
}

Theta Gp::PriorCentre(const FitOptions& options) const {
  Theta theta(dimensions_, LengthPrior(dimensions_, options.smooth).mean);
  theta.push_back(kVariance.mean);
  theta.push_back(NoisePrior(options.smooth).mean);
  theta.push_back(options.additive && dimensions_ > 1 ? kShare.mean : kNoShare);
  theta.resize(theta.size() + 2 * numeric_.size(), 0.0);
  return theta;
}

Gp::Parts Gp::PartsOf(const Theta& theta) const {
  Parts parts;
  for (size_t d = 0; d < dimensions_; ++d) parts.inverse_length.push_back(Exp(-theta[d]));
  parts.variance = Exp(theta[dimensions_]);
  parts.noise = Exp(theta[dimensions_ + 1]) + kLeastNoise;
  const double share = theta[dimensions_ + 2];
  parts.share = share <= kNoShare ? 0.0 : 1.0 / (1.0 + Exp(-share));
  parts.warps.resize(dimensions_);
  for (size_t t = 0; t < numeric_.size(); ++t) {
    parts.warps[numeric_[t]] = {Exp(theta[dimensions_ + 3 + t]),
                                Exp(theta[dimensions_ + 3 + numeric_.size() + t])};
  }
  return parts;
}

void Gp::PlaceData(const Parts& parts) {
  for (size_t d = 0; d < dimensions_; ++d) {
    const double* x = x_.data() + d * stride_;
    double* z = z_.data() + d * stride_;
    const auto& warp = parts.warps[d];
    for (size_t i = 0; i < n_; ++i) {
      if (categorical_[d]) {
        z[i] = x[i];
      } else {
        // A neutral warp would only add rounding errors.
        const bool straight = warp.a == 1.0 && warp.b == 1.0;
        z[i] = (straight ? x[i] : Bend(x[i], warp.a, warp.b)) * parts.inverse_length[d];
      }
    }
    if (categorical_[d] || !(parts.share > 0)) continue;
    for (size_t i = 0; i < n_; ++i) {
      const size_t at = d * stride_ + i;
      alone_[at] = reach_ * z[i];
      up_[at] = Exp(alone_[at]);
      down_[at] = 1.0 / up_[at];
    }
  }
}

void Gp::PlacedRow(size_t i, Placed& out) const {
  for (size_t d = 0; d < dimensions_; ++d) {
    const size_t at = d * stride_ + i;
    out.z[d] = z_[at];
    out.alone[d] = {alone_[at], up_[at], down_[at]};
  }
}

Line Gp::LineOf(size_t d) const {
  return {alone_.data() + d * stride_, up_.data() + d * stride_, down_.data() + d * stride_};
}

void Gp::PlacePoint(const Point& x, Placed& out, double* slopes) const {
  for (size_t d = 0; d < dimensions_; ++d) {
    if (categorical_[d]) {
      out.z[d] = x[d];
      if (slopes) slopes[d] = 0;
      continue;
    }
    const auto& warp = parts_.warps[d];
    const double u = std::clamp(x[d], kEdge, 1 - kEdge);
    const double scale = parts_.inverse_length[d];
    if (warp.a == 1.0 && warp.b == 1.0) {
      out.z[d] = u * scale;
      if (slopes) slopes[d] = scale;
    } else {
      const double log_u = Log(u);
      const double ua = Exp(warp.a * log_u);
      const double log_rest = Log1p(-ua);
      out.z[d] = -Expm1(warp.b * log_rest) * scale;
      if (slopes) {
        slopes[d] = warp.a * warp.b * Exp((warp.a - 1) * log_u + (warp.b - 1) * log_rest) * scale;
      }
    }
    if (parts_.share > 0) {
      const double alone = reach_ * out.z[d], up = Exp(alone);
      out.alone[d] = {alone, up, 1.0 / up};
    }
  }
}

void Gp::KernelRow(const Parts& parts, const Placed& at, size_t n, double* joint, double* h,
                   double* additive) const {
  const auto& z = at.z;
  const size_t length = Padded(n);
  std::fill(joint, joint + length, 0.0);
  const bool mixed = additive && parts.share > 0;
  if (mixed) std::fill(additive, additive + length, 0.0);
  const double weight = 1.0 / static_cast<double>(dimensions_);
  for (size_t d = 0; d < dimensions_; ++d) {
    const double* row = z_.data() + d * stride_;
    if (!categorical_[d]) {
      lanes_.add_squares(joint, row, z[d], length);
      if (mixed) lanes_.add_matern(additive, LineOf(d), at.alone[d], weight, length);
      continue;
    }
    // Categories that differ are 1 apart, by the length scale, whichever they are. Alone, they have
    // one of two kernel values: so 1 everywhere, lowered where they differ.
    const double apart = parts.inverse_length[d] * parts.inverse_length[d];
    lanes_.add_mismatch(joint, row, z[d], apart, length);
    if (mixed) {
      const double r = std::sqrt(5.0 * apart) * stretch_;
      const double k = (1.0 + r + r * r / 3.0) * Exp(-r);
      for (size_t i = 0; i < length; ++i) additive[i] += weight;
      lanes_.add_mismatch(additive, row, z[d], weight * (k - 1.0), length);
    }
  }
  lanes_.matern(joint, joint, h, length);
}

bool Gp::BuildMatrix(const Parts& parts) {
  const size_t size = stride_ * (stride_ + 4);
  for (auto* matrix : {&joint_, &h_, &additive_, &sum_}) {
    if (matrix->size() != size) matrix->assign(size, 0.0);
  }
  Placed at{std::vector<double>(dimensions_), std::vector<Place>(dimensions_)};
  for (size_t i = 0; i < n_; ++i) {
    PlacedRow(i, at);
    double* joint = joint_.data() + i * stride_;
    double* additive = additive_.data() + i * stride_;
    double* sum = sum_.data() + i * stride_;
    KernelRow(parts, at, i + 1, joint, h_.data() + i * stride_, additive);
    for (size_t j = 0; j <= i; ++j) {
      const double mixed =
          parts.share > 0 ? joint[j] + parts.share * (additive[j] - joint[j]) : joint[j];
      sum[j] = parts.variance * mixed;
    }
    sum[i] += parts.noise;
  }
  return factor_.Decompose(sum_.data(), n_);
}

double Gp::Objective(const Theta& theta, std::vector<double>& gradient) {
  const Parts parts = PartsOf(theta);
  gradient.assign(theta.size(), 0.0);
  PlaceData(parts);
  if (!BuildMatrix(parts)) return kBroken;
  factor_.Invert();
  factor_.Solve(y_.data(), alpha_.data());
  inverse_.resize(sum_.size());
  factor_.InverseOfK(inverse_.data());
  const double fit =
      0.5 * lanes_.dot(y_.data(), alpha_.data(), Padded(n_)) + factor_.half_log_determinant();
  AddKernelGradient(parts, gradient);
  return fit + AddPriors(theta, gradient);
}

// With M = alpha alpha' - K^-1, the objective's derivative by K is -M/2 (Rasmussen & Williams,
// 5.9). inverse_ becomes M, h_ becomes M h (full, symmetric). In each dimension comes first how the
// objective changes when one point moves; length scales and warps move points, so the rest is the
// chain rule.
void Gp::AddKernelGradient(const Parts& parts, std::vector<double>& gradient) {
  const size_t length = Padded(n_);
  double by_variance = 0, by_noise = 0, by_share = 0;
  const double joint_scale = parts.variance * (1.0 - parts.share);
  std::vector<double> row_sums(n_, 0.0);
  for (size_t i = 0; i < n_; ++i) {
    double* m = inverse_.data() + i * stride_;
    for (size_t j = 0; j <= i; ++j) {
      const size_t at = i * stride_ + j;
      const double value = alpha_[i] * alpha_[j] - m[j];
      const double twice = i == j ? 1.0 : 2.0;  // for the upper half
      by_variance += twice * value * (sum_[at] - (i == j ? parts.noise : 0.0));
      if (parts.share > 0) by_share += twice * value * (additive_[at] - joint_[at]);
      m[j] = inverse_[j * stride_ + i] = value;
      h_[at] = h_[j * stride_ + i] = joint_scale * value * h_[at];
    }
    by_noise += m[i];
  }
  for (size_t i = 0; i < n_; ++i) {
    std::fill(h_.begin() + static_cast<ptrdiff_t>(i * stride_ + n_),
              h_.begin() + static_cast<ptrdiff_t>(i * stride_ + length), 0.0);
    std::fill(inverse_.begin() + static_cast<ptrdiff_t>(i * stride_ + n_),
              inverse_.begin() + static_cast<ptrdiff_t>(i * stride_ + length), 0.0);
    for (size_t j = 0; j < n_; ++j) row_sums[i] += h_[i * stride_ + j];
  }
  gradient[dimensions_] += -0.5 * by_variance;
  gradient[dimensions_ + 1] += -0.5 * by_noise * (parts.noise - kLeastNoise);
  gradient[dimensions_ + 2] += -0.5 * by_share * parts.variance * parts.share * (1.0 - parts.share);

  const double additive_scale =
      parts.variance * parts.share * stretch_ * stretch_ / static_cast<double>(dimensions_);
  std::vector<double> by_place(dimensions_ * n_, 0.0);
  for (size_t d = 0; d < dimensions_; ++d) {
    const double* z = z_.data() + d * stride_;
    double by_length = 0;
    if (categorical_[d]) {
      const double apart = parts.inverse_length[d] * parts.inverse_length[d];
      double joint = 0, additive = 0;
      for (size_t i = 0; i < n_; ++i) {
        joint += lanes_.sum_mismatch(h_.data() + i * stride_, z, z[i], length);
        if (parts.share > 0) {
          additive += lanes_.sum_mismatch(inverse_.data() + i * stride_, z, z[i], length);
        }
      }
      const double r = std::sqrt(5.0 * apart) * stretch_;
      by_length =
          -0.5 * apart * (joint + additive_scale * (5.0 / 3.0) * (1.0 + r) * Exp(-r) * additive);
    } else {
      for (size_t i = 0; i < n_; ++i) {
        const double* pull = h_.data() + i * stride_;
        // The sum of pull_j (z_i - z_j), without making the differences.
        double place = row_sums[i] * z[i] - lanes_.dot(pull, z, length);
        if (parts.share > 0) {
          double slopes[2];
          const double* m = inverse_.data() + i * stride_;
          const size_t at = d * stride_ + i;
          lanes_.matern_slopes(m, m, LineOf(d), {alone_[at], up_[at], down_[at]}, length, slopes);
          place += additive_scale / reach_ * slopes[0];
        }
        by_place[d * n_ + i] = place;
        by_length -= place * z[i];
      }
    }
    gradient[d] += by_length;
  }
  AddWarpGradient(parts, by_place, gradient);
}

void Gp::AddWarpGradient(const Parts& parts, const std::vector<double>& by_place,
                         std::vector<double>& gradient) const {
  for (size_t t = 0; t < numeric_.size(); ++t) {
    const size_t d = numeric_[t];
    const auto& warp = parts.warps[d];
    double by_a = 0, by_b = 0;
    for (size_t i = 0; i < n_; ++i) {
      const double log_u = Log(x_[d * stride_ + i]);
      const double ua = Exp(warp.a * log_u);
      const double log_rest = Log1p(-ua);
      const double rest_b = Exp(warp.b * log_rest);
      const double place = by_place[d * n_ + i] * parts.inverse_length[d];
      by_a += place * warp.b * Exp((warp.b - 1) * log_rest) * ua * log_u * warp.a;
      by_b -= place * rest_b * log_rest * warp.b;
    }
    gradient[dimensions_ + 3 + t] += by_a;
    gradient[dimensions_ + 3 + numeric_.size() + t] += by_b;
  }
}

double Gp::AddPriors(const Theta& theta, std::vector<double>& gradient) const {
  double sum = 0;
  const auto add = [&](size_t i, const Prior& prior) {
    const double z = (theta[i] - prior.mean) / prior.deviation;
    sum += 0.5 * z * z;
    gradient[i] += z / prior.deviation;
  };
  const Prior length = LengthPrior(dimensions_, smooth_);
  for (size_t d = 0; d < dimensions_; ++d) add(d, length);
  add(dimensions_, kVariance);
  add(dimensions_ + 1, NoisePrior(smooth_));
  if (theta[dimensions_ + 2] > kNoShare) add(dimensions_ + 2, kShare);
  for (size_t i = dimensions_ + 3; i < theta.size(); ++i) add(i, kWarp);
  return sum;
}

Gp::Fitted Gp::Fit(const Theta& start, const FitOptions& options) {
  smooth_ = options.smooth;
  Box box;
  const auto bound = [&](double low, double high) {
    box.low.push_back(low);
    box.high.push_back(high);
  };
  const Prior length = LengthPrior(dimensions_, smooth_);
  const Prior& noise = NoisePrior(smooth_);
  for (size_t d = 0; d < dimensions_; ++d) bound(length.low, length.high);
  bound(kVariance.low, kVariance.high);
  bound(noise.low, noise.high);
  const bool additive = options.additive && dimensions_ > 1;
  bound(additive ? kShare.low : kNoShare, additive ? kShare.high : kNoShare);
  for (size_t t = 0; t < 2 * numeric_.size(); ++t) {
    bound(options.warped ? kWarp.low : 0.0, options.warped ? kWarp.high : 0.0);
  }
  MinimiseOptions limits;
  limits.evaluations = options.evaluations;
  limits.tolerance = 1e-4;  // coarse, because each evaluation costs the cube of the points
  auto found =
      Minimise([this](const Theta& theta,
                      std::vector<double>& gradient) { return Objective(theta, gradient); },
               start, box, limits);
  return {std::move(found.x), found.value};
}

bool Gp::Condition(const Theta& theta) {
  parts_ = PartsOf(theta);
  PlaceData(parts_);
  if (!BuildMatrix(parts_)) return false;
  factor_.Invert();
  factor_.Solve(y_.data(), alpha_.data());
  return true;
}

void Gp::MixedRow(const Placed& at, double* k, double* h, double* additive) const {
  const size_t n = factor_.size();
  KernelRow(parts_, at, n, k, h, additive);
  for (size_t i = 0; i < n; ++i) {
    k[i] = parts_.variance * (parts_.share > 0 ? k[i] + parts_.share * (additive[i] - k[i]) : k[i]);
  }
  std::fill(k + n, k + Padded(n), 0.0);
}

void Gp::Fantasise(const Point& x) {
  Placed at{std::vector<double>(dimensions_), std::vector<Place>(dimensions_)};
  std::vector<double> k(stride_, 0.0), additive(stride_, 0.0);
  PlacePoint(x, at, nullptr);
  MixedRow(at, k.data(), nullptr, additive.data());
  const size_t n = factor_.size();
  // Without rounding, at least the noise is left of the diagonal. Its value is what was predicted,
  // so it has no weight: alpha_ stays, and has zeros from n_ on.
  factor_.Append(k.data(), parts_.variance + parts_.noise, 0.5 * parts_.noise);
  for (size_t d = 0; d < dimensions_; ++d) {
    z_[d * stride_ + n] = at.z[d];
    alone_[d * stride_ + n] = at.alone[d].x;
    up_[d * stride_ + n] = at.alone[d].up;
    down_[d * stride_ + n] = at.alone[d].down;
  }
}

void Gp::Predict(const std::vector<Point>& x, std::vector<Prediction>& out) {
  out.resize(x.size());
  Placed at{std::vector<double>(dimensions_), std::vector<Place>(dimensions_)};
  std::vector<double> rows(4 * stride_, 0.0), additive(stride_, 0.0);
  double norms[4];
  for (size_t i = 0; i < x.size(); i += 4) {
    const size_t many = std::min<size_t>(4, x.size() - i);
    for (size_t r = 0; r < many; ++r) {
      PlacePoint(x[i + r], at, nullptr);
      double* row = rows.data() + r * stride_;
      MixedRow(at, row, nullptr, additive.data());
      out[i + r].mean = lanes_.dot(row, alpha_.data(), Padded(n_));
    }
    factor_.SquaredNorms4(rows.data(), stride_, norms);
    for (size_t r = 0; r < many; ++r) {
      // Never 0: the acquisition divides by it.
      out[i + r].deviation = std::sqrt(std::max(parts_.variance - norms[r], 1e-10));
    }
  }
}

void Gp::PredictWithSlope(const Point& x, PredictionSlope& out) {
  const size_t n = factor_.size(), length = Padded(n);
  Placed at{std::vector<double>(dimensions_), std::vector<Place>(dimensions_)};
  const auto& z = at.z;
  std::vector<double> bends(dimensions_), k(stride_, 0.0), h(stride_, 0.0), additive(stride_, 0.0),
      forward(stride_, 0.0), back(stride_, 0.0);
  PlacePoint(x, at, bends.data());
  MixedRow(at, k.data(), h.data(), additive.data());
  std::fill(h.begin() + static_cast<ptrdiff_t>(n), h.begin() + static_cast<ptrdiff_t>(length), 0.0);
  factor_.Forward(k.data(), forward.data());
  factor_.Backward(forward.data(), back.data());
  out.at.mean = lanes_.dot(k.data(), alpha_.data(), Padded(n_));
  const double variance =
      std::max(parts_.variance - lanes_.dot(forward.data(), forward.data(), length), 1e-10);
  out.at.deviation = std::sqrt(variance);

  std::vector<double> by_mean(stride_, 0.0), by_variance(stride_, 0.0);
  lanes_.multiply(by_mean.data(), alpha_.data(), h.data(), length);
  lanes_.multiply(by_variance.data(), back.data(), h.data(), length);
  double mean_sum = 0, variance_sum = 0;
  for (size_t i = 0; i < n; ++i) {
    mean_sum += by_mean[i];
    variance_sum += by_variance[i];
  }
  const double joint = parts_.variance * (1.0 - parts_.share);
  const double alone =
      parts_.variance * parts_.share * stretch_ * stretch_ / static_cast<double>(dimensions_);
  out.mean.assign(dimensions_, 0.0);
  out.deviation.assign(dimensions_, 0.0);
  for (size_t d : numeric_) {
    const double* row = z_.data() + d * stride_;
    double mean = joint * (z[d] * mean_sum - lanes_.dot(by_mean.data(), row, length));
    double both = joint * (z[d] * variance_sum - lanes_.dot(by_variance.data(), row, length));
    if (parts_.share > 0) {
      double slopes[2];
      lanes_.matern_slopes(alpha_.data(), back.data(), LineOf(d), at.alone[d], length, slopes);
      mean += alone / reach_ * slopes[0];
      both += alone / reach_ * slopes[1];
    }
    // dk/dz = -h (z - z_i); the deviation's is that of sqrt(variance - k' K^-1 k).
    out.mean[d] = -mean * bends[d];
    out.deviation[d] = both * bends[d] / out.at.deviation;
  }
}

}  // namespace athanor::tune
