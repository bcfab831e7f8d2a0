// The inner loops of the Gaussian process, built twice from one text (lanes_impl.h): for plain
// x86-64 and for AVX2 without fused multiply-add. Sums run over eight fixed lanes, so both give
// the same bytes; only the speed differs.
//
// Rows are padded with zeros to a multiple of kLane doubles; every `n` here is such a multiple.
#pragma once

#include <cstddef>

namespace athanor::tune {

constexpr size_t kLane = 8;
constexpr size_t Padded(size_t n) { return (n + kLane - 1) / kLane * kLane; }
constexpr size_t FlooredToLane(size_t n) { return n / kLane * kLane; }

// Coordinates x with e^x and e^-x; a row of them, and one. |x| stays below 700.
struct Line {
  const double *x, *up, *down;
};
struct Place {
  double x, up, down;
};

struct Lanes {
  double (*dot)(const double* a, const double* b, size_t n);
  // out[r] = dot of row r of `a` (rows `stride` apart) with b, for four rows.
  void (*dot4)(const double* a, size_t stride, const double* b, size_t n, double* out);
  void (*axpy)(double* y, const double* x, double factor, size_t n);  // y += factor x
  // acc += (x - centre)^2, and acc += weight where x != centre.
  void (*add_squares)(double* acc, const double* x, double centre, size_t n);
  void (*add_mismatch)(double* acc, const double* x, double centre, double weight, size_t n);
  // The sum of g where x != centre.
  double (*sum_mismatch)(const double* g, const double* x, double centre, size_t n);
  // From squared distances r2, with r = sqrt(5 r2): k = (1 + r + r^2/3) e^-r and
  // h = 5/3 (1 + r) e^-r, which is -2 dk/d(r2).
  void (*matern)(const double* r2, double* k, double* h, size_t n);
  // The same of one dimension: acc += weight k(|x - centre|), and out[t] = the sum of
  // m_t h(|x - centre|) (centre - x) for two rows of weights, where x, centre and so out are
  // sqrt(5) times too large. No exponential is taken: e^-|x - y| is the smaller of e^x e^-y and
  // e^-x e^y.
  void (*add_matern)(double* acc, const Line& x, const Place& centre, double weight, size_t n);
  void (*matern_slopes)(const double* m0, const double* m1, const Line& x, const Place& centre,
                        size_t n, double* out);
  // out = a * b, by element.
  void (*multiply)(double* out, const double* a, const double* b, size_t n);
};

extern const Lanes kPlainLanes;
extern const Lanes kAvx2Lanes;
const Lanes& BestLanes();  // by this processor; plain with ATHANOR_TUNE_LANES=plain

}  // namespace athanor::tune
