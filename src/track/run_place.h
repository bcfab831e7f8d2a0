// A position in a sorted list of runs: the values by which the run there is sorted. A page that
// begins after a position neither repeats runs nor has gaps, whatever was added or removed in the
// meantime.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/ids.h"

namespace athanor {

// One value to sort by. Numbers and texts come before NaN, and missing values come last, in both
// directions of the sort.
struct SortValue {
  enum class Rank : uint8_t { kValue, kNaN, kMissing };
  Rank rank = Rank::kMissing;
  double number = 0;
  std::string_view text;
  bool is_text = false;

  static SortValue Number(double value);
  static SortValue Text(std::string_view text) { return {Rank::kValue, 0, text, true}; }
};

// Less than 0: `a` comes first. Both are numbers, or both are texts.
int Compare(const SortValue& a, const SortValue& b, bool ascending);
// A number that increases with the order: of two values with different numbers, the lower comes
// first. Most comparisons of a sort then compare two integers (PostgreSQL's abbreviated keys).
uint64_t SortKey(const SortValue& value, bool ascending);
// Of a number, or of one that is missing if it is no number: a search asks it of every run.
inline uint64_t NumberSortKey(double value, bool ascending) {
  if (std::isnan(value)) return UINT64_MAX;
  // The bits of a positive double rise with it, those of a negative one fall.
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);  // -0 is 0
  const uint64_t key = bits >> 63 != 0 ? ~bits : bits | 1ull << 63;
  return ascending ? key : ~key;
}

struct RunPlace {
  struct Value {
    SortValue::Rank rank = SortValue::Rank::kMissing;
    double number = 0;
    std::string text;
    bool is_text = false;
    SortValue view() const { return {rank, number, text, is_text}; }
  };
  std::vector<Value> values;  // one for each part of the order
  int64_t started_ms = 0;     // the newest first where they are equal
  JobId id;                   // then by id
};

// As a token that callers send back.
std::string EncodePlace(const RunPlace& place);
Result<RunPlace> DecodePlace(std::string_view token);  // kInvalid: it is none

}  // namespace athanor
