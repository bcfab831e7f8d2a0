#include "tune/gp/factor.h"

#include <algorithm>
#include <cmath>

#include "tune/math.h"

namespace athanor::tune {

// Dots run over padded lengths: what is beyond the end of a row is zero in one of the two factors,
// because L is filled from the left and starts as zeros.
Factor::Factor(size_t capacity)
    : lanes_(BestLanes()),
      stride_(Padded(capacity)),
      // Four rows more: the last dot of four may go on behind the matrix.
      lower_(stride_ * (stride_ + 4), 0.0),
      inverse_(lower_.size(), 0.0),
      columns_(lower_.size(), 0.0) {}

bool Factor::Decompose(const double* k, size_t n) {
  n_ = n;
  half_log_determinant_ = 0;
  std::fill(lower_.begin(), lower_.end(), 0.0);
  double sums[4];
  for (size_t i = 0; i < n; i += 4) {
    const size_t rows = std::min<size_t>(4, n - i);
    // What is left of the block of four, then the block itself, whose rows need each other.
    for (size_t j = 0; j < i; ++j) {
      lanes_.dot4(Row(lower_, i), stride_, Row(lower_, j), Padded(j), sums);
      const double diagonal = lower_[j * stride_ + j];
      for (size_t r = 0; r < rows; ++r) {
        lower_[(i + r) * stride_ + j] = (k[(i + r) * stride_ + j] - sums[r]) / diagonal;
      }
    }
    for (size_t r = i; r < i + rows; ++r) {
      for (size_t c = i; c <= r; ++c) {
        const double rest =
            k[r * stride_ + c] - lanes_.dot(Row(lower_, r), Row(lower_, c), Padded(c));
        if (c < r) {
          lower_[r * stride_ + c] = rest / lower_[c * stride_ + c];
        } else {
          // Points that are nearly the same leave rounding errors only.
          if (!(rest > 0) || !std::isfinite(rest)) return false;
          lower_[r * stride_ + c] = std::sqrt(rest);
          half_log_determinant_ += 0.5 * Log(rest);
        }
      }
    }
  }
  return true;
}

// Forward substitution of the unit vectors, one for each column of L^-1. A column is 0 above its
// diagonal, so sums start at the lane of that.
void Factor::Invert() {
  std::fill(columns_.begin(), columns_.end(), 0.0);
  double sums[4];
  for (size_t j = 0; j < n_; j += 4) {
    const size_t from = FlooredToLane(j);
    const size_t columns = std::min<size_t>(4, n_ - j);
    for (size_t c = j; c < j + columns; ++c) {
      columns_[c * stride_ + c] = 1.0 / lower_[c * stride_ + c];
      for (size_t i = c + 1; i < std::min(j + 4, n_); ++i) {
        columns_[c * stride_ + i] =
            -lanes_.dot(Row(lower_, i) + from, Row(columns_, c) + from, Padded(i) - from) /
            lower_[i * stride_ + i];
      }
    }
    for (size_t i = j + 4; i < n_; ++i) {
      lanes_.dot4(Row(columns_, j) + from, stride_, Row(lower_, i) + from, Padded(i) - from, sums);
      const double diagonal = lower_[i * stride_ + i];
      for (size_t c = 0; c < columns; ++c) columns_[(j + c) * stride_ + i] = -sums[c] / diagonal;
    }
  }
  std::fill(inverse_.begin(), inverse_.end(), 0.0);
  for (size_t i = 0; i < n_; ++i) {
    for (size_t j = i; j < n_; ++j) inverse_[j * stride_ + i] = columns_[i * stride_ + j];
  }
}

// K^-1 = (L^-1)' L^-1: the dots of its columns.
void Factor::InverseOfK(double* out) const {
  double sums[4];
  for (size_t i = 0; i < n_; ++i) {
    const size_t from = FlooredToLane(i);
    const size_t length = Padded(n_) - from;
    for (size_t j = 0; j <= i; j += 4) {
      lanes_.dot4(Row(columns_, j) + from, stride_, Row(columns_, i) + from, length, sums);
      for (size_t c = j; c <= std::min(i, j + 3); ++c) {
        out[i * stride_ + c] = out[c * stride_ + i] = sums[c - j];
      }
    }
  }
}

void Factor::Forward(const double* k, double* out) const {
  for (size_t i = 0; i < n_; i += 4)
    lanes_.dot4(Row(inverse_, i), stride_, k, Padded(i + 4), out + i);
  std::fill(out + n_, out + stride_, 0.0);
}

void Factor::Backward(const double* t, double* out) const {
  for (size_t i = 0; i < n_; i += 4) {
    const size_t from = FlooredToLane(i);
    lanes_.dot4(Row(columns_, i) + from, stride_, t + from, Padded(n_) - from, out + i);
  }
  std::fill(out + n_, out + stride_, 0.0);
}

void Factor::Solve(const double* y, double* out) const {
  std::vector<double> half(stride_, 0.0);
  Forward(y, half.data());
  Backward(half.data(), out);
}

// Bordering: the new row of L is L^-1 k, its pivot the root of what that leaves of the diagonal,
// and the new row of L^-1 follows from both. n^2 steps instead of the n^3 of a new factor.
void Factor::Append(const double* k, double diagonal, double least) {
  std::vector<double> row(stride_, 0.0), back(stride_, 0.0);
  Forward(k, row.data());
  const double pivot =
      std::sqrt(std::max(diagonal - lanes_.dot(row.data(), row.data(), Padded(n_)), least));
  Backward(row.data(), back.data());
  for (size_t i = 0; i < n_; ++i) {
    inverse_[n_ * stride_ + i] = columns_[i * stride_ + n_] = -back[i] / pivot;
    lower_[n_ * stride_ + i] = row[i];
  }
  inverse_[n_ * stride_ + n_] = columns_[n_ * stride_ + n_] = 1.0 / pivot;
  lower_[n_ * stride_ + n_] = pivot;
  half_log_determinant_ += Log(pivot);
  ++n_;
}

void Factor::SquaredNorms4(const double* k, size_t stride, double* out) const {
  double sums[4];
  for (int r = 0; r < 4; ++r) out[r] = 0;
  for (size_t i = 0; i < n_; ++i) {
    lanes_.dot4(k, stride, Row(inverse_, i), Padded(i + 1), sums);
    for (int r = 0; r < 4; ++r) out[r] += sums[r] * sums[r];
  }
}

}  // namespace athanor::tune
