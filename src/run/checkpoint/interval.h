// How often to save: the interval with the lowest sum of the time lost to saving and the time lost
// to redoing work after a loss (Young 1974, Daly 2006). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "job/record.h"

namespace athanor {

// `save_ms`: what one save takes from the script; `mtbf_ms`: mean time between losses of this kind
// of machine. every_ms is work between the end of a save and the next; 0 if either is unknown.
// sqrt(2 C M) - C, limited to the range between
//   below: 10 C, so that an M measured from few losses cannot make a script spend more
//     than a tenth of its time on saving; but never more than M / 2, or a machine that is
//     lost all the time would be lost before its first save; and at least a second, under
//     which the files never come to rest;
//   above: an hour, or 50 C when that is longer: M knows of lost machines only, not of
//     scripts that crash, and an hour's save costs at most 2 %.
IntervalAdvice AdviseInterval(int64_t save_ms, int64_t mtbf_ms, std::string source);

// The part of all time, 0 to 1, that goes into saving and into redoing what was lost. 0 if there is
// no advice.
double ExpectedCost(const IntervalAdvice& advice);

}  // namespace athanor
