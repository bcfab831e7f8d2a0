// A Cholesky factor K = L L' with its inverse, to which rows can be appended: what is needed to fit
// a Gaussian process, evaluate it and extend it by running trials. The textbook's method by rows
// (Cholesky-Banachiewicz), four of them at a time: what they have in common is then read once.
//
// Not thread-safe. Memory: three matrices of `capacity` x `capacity`.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/lanes.h"

namespace athanor::tune {

class Factor {
 public:
  explicit Factor(size_t capacity);

  // Of the n x n matrix whose lower half is in `k`, rows stride() apart. False if it is not
  // positive definite (or not finite); the factor is then unusable until the next call.
  bool Decompose(const double* k, size_t n);
  // Fills L^-1; needed before all functions below.
  void Invert();
  // The lower half and the upper half of K^-1, rows stride() apart.
  void InverseOfK(double* out) const;
  // K^-1 y; `y` and `out` are padded rows.
  void Solve(const double* y, double* out) const;
  // Adds a row: `k` (padded) against the n rows so far, and its diagonal. A diagonal without
  // anything left is raised to `least`.
  void Append(const double* k, double diagonal, double least);
  // out = L^-1 k.
  void Forward(const double* k, double* out) const;
  // out = L^-T t.
  void Backward(const double* t, double* out) const;
  // |L^-1 k|^2 of four rows of `k`, `stride` apart.
  void SquaredNorms4(const double* k, size_t stride, double* out) const;

  size_t size() const { return n_; }
  size_t stride() const { return stride_; }
  double half_log_determinant() const { return half_log_determinant_; }

 private:
  double* Row(std::vector<double>& matrix, size_t i) { return matrix.data() + i * stride_; }
  const double* Row(const std::vector<double>& matrix, size_t i) const {
    return matrix.data() + i * stride_;
  }

  const Lanes& lanes_;
  size_t stride_;
  size_t n_ = 0;
  double half_log_determinant_ = 0;
  std::vector<double> lower_;    // L
  std::vector<double> inverse_;  // L^-1
  std::vector<double> columns_;  // L^-1 transposed: row i is its column i
};

}  // namespace athanor::tune
