// Compiled with -mavx2 -mno-fma; chosen at run time.
#include "tune/lanes_impl.h"

namespace athanor::tune {

const Lanes kAvx2Lanes = kThese;

}  // namespace athanor::tune
