#include "door/native/job_choice.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "job/shown.h"

namespace athanor {
namespace {

std::string AllStates() {
  std::string names;
  for (const JobState state : kAllStates) names += std::string(NameOf(state)) + ", ";
  for (const auto view : kViews) names += std::string(view) + ", ";
  names.resize(names.size() - 2);
  return names;
}

}  // namespace

Status ChooseStates(std::string_view text, JobChoice& choice) {
  for (const auto& part : Split(text, ',')) {
    const std::string name = ToLower(Trim(part));
    const auto state = std::ranges::find_if(
        kAllStates, [&](JobState each) { return ToLower(NameOf(each)) == name; });
    const auto view =
        std::ranges::find_if(kViews, [&](std::string_view each) { return ToLower(each) == name; });
    if (state != std::end(kAllStates)) {
      choice.states.push_back(*state);
    } else if (view != std::end(kViews)) {
      choice.views.push_back(*view);
    } else {
      return Fail(Error{ErrorCode::kInvalid, "no such state: " + Printable(Trim(part)),
                        "use one or more of " + AllStates()}
                      .Id("ATH-R0011"));
    }
  }
  return Ok();
}

Status ChooseTag(std::string_view text, JobChoice& choice) {
  const size_t equals = text.find('=');
  JobChoice::Tag tag{std::string(text.substr(0, equals)), std::nullopt};
  if (equals != std::string_view::npos) tag.value = std::string(text.substr(equals + 1));
  if (tag.key.empty()) {
    return Fail(Error{ErrorCode::kInvalid, "invalid tag \"" + Printable(text) + "\"",
                      "use KEY=VALUE, or KEY for any value"}
                    .Id("ATH-R0014"));
  }
  choice.tags.push_back(std::move(tag));
  return Ok();
}

Status ChooseAge(std::string_view text, JobChoice& choice) {
  ATHANOR_TRY(const auto older, ParseDuration(text));
  choice.older = older;
  return Ok();
}

Result<JobChoice> ChoiceIn(const Request& request) {
  JobChoice choice;
  for (const auto& [name, value] : request.query) {
    if (name == "state") ATHANOR_CHECK_OK(ChooseStates(value, choice));
    if (name == "tag") ATHANOR_CHECK_OK(ChooseTag(value, choice));
    if (name == "older") ATHANOR_CHECK_OK(ChooseAge(value, choice));
    if (name == "experiment") choice.experiment = value;
    if (name == "name") choice.name = value;
  }
  return choice;
}

void KeepChosen(const DoorContext& context, const JobChoice& choice,
                std::vector<JobSummary>& jobs) {
  const int64_t now = context.clock.Wall().ms;
  const auto has = [&](const JobSummary& job, const JobChoice::Tag& tag) {
    const auto value = context.runs.TagOf(job.id, tag.key);
    return value && (!tag.value || *value == *tag.value);
  };
  std::erase_if(jobs, [&](const JobSummary& job) {
    if (!choice.name.empty() && ::fnmatch(choice.name.c_str(), job.name.c_str(), 0) != 0)
      return true;
    const int64_t since = job.ended.ms != 0 ? job.ended.ms : job.created.ms;
    if (choice.older && now - since < choice.older->count()) return true;
    return !std::ranges::all_of(choice.tags, [&](const auto& tag) { return has(job, tag); });
  });
}

}  // namespace athanor
