// Which jobs a request means: by state, experiment, tag, name and age. Lists, bulk stops and bulk
// removals accept the same filters, so that `ath ps` shows what `ath rm` would delete.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "door/context.h"
#include "net/http/http_types.h"

namespace athanor {

struct JobChoice {
  struct Tag {
    std::string key;
    std::optional<std::string> value;  // none: any
  };
  std::vector<JobState> states;         // with no `views`: empty means all
  std::vector<std::string_view> views;  // of states, which the store does not know (job/shown.h)
  std::string experiment;
  std::string name;             // a shell pattern; empty: any
  std::vector<Tag> tags;        // it has all of them
  std::optional<Millis> older;  // since it ended or, unless it has, was created

  bool empty() const {
    return states.empty() && views.empty() && experiment.empty() && name.empty() && tags.empty() &&
           !older;
  }
  // A filter that the store's own query does not have.
  bool looks_closer() const { return !name.empty() || !tags.empty() || older; }
};

// "failed,running" in any case, KEY=VALUE or KEY, 7d: each added to `choice`. kInvalid says what is
// accepted.
Status ChooseStates(std::string_view text, JobChoice& choice);
Status ChooseTag(std::string_view text, JobChoice& choice);
Status ChooseAge(std::string_view text, JobChoice& choice);

// From the query of a request: state, experiment, name, tag (any number of times) and older.
Result<JobChoice> ChoiceIn(const Request& request);

// Removes from `jobs` what has another name, tag or age. On any thread.
void KeepChosen(const DoorContext& context, const JobChoice& choice, std::vector<JobSummary>& jobs);

}  // namespace athanor
