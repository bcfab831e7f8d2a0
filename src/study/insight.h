// What the trials of a study show about its parameters: how much each matters, and what to change.
// Pure and deterministic.
#pragma once

#include <string>
#include <vector>

#include "study/record.h"

namespace athanor {

struct Importance {
  std::string parameter;
  double share = 0;  // all of them add up to 1, unless all are 0
};
// By PED-ANOVA, as for runs (track/importance.h), but on the scales of the space; heaviest first.
// Empty below 8 finished trials.
std::vector<Importance> ParameterImportance(const StudyRecord& record);

struct StudyHint {
  std::string text;
  std::string next;  // what to change or type; may be empty
};
std::vector<StudyHint> HintsFor(const StudyRecord& record);

}  // namespace athanor
