#include "tune/lanes.h"

#include <cstdlib>
#include <string_view>

#include "tune/lanes_impl.h"

namespace athanor::tune {

const Lanes kPlainLanes = kThese;

const Lanes& BestLanes() {
#if defined(__x86_64__)
  // A test compares whole searches with and without.
  static const bool avx2 = [] {
    const char* wanted = std::getenv("ATHANOR_TUNE_LANES");
    return __builtin_cpu_supports("avx2") && !(wanted && std::string_view(wanted) == "plain");
  }();
  return avx2 ? kAvx2Lanes : kPlainLanes;
#else
  return kPlainLanes;
#endif
}

}  // namespace athanor::tune
