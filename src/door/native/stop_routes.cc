// The native door's stop of many jobs at once.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/job_choice.h"
#include "door/queries.h"
#include "job/event.h"

namespace athanor {
namespace {

constexpr size_t kMostNamed = 1'000;
// Of one turn: a hundred thousand are stopped while the others are served.
constexpr size_t kAtOnce = 200;

struct Wanted {
  std::vector<std::string> named;
  JobChoice choice;  // no states: all that are not over
  bool all = false;
  bool dry_run = false;
  std::optional<Millis> grace;

  bool chooses() const { return all || !choice.empty(); }
};

tl::unexpected<Error> NotUnderstood(std::string what, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}.Id("ATH-R0014"));
}

Status ChooseLiveStates(const std::string& text, JobChoice& choice) {
  if (ChooseStates(text, choice) && choice.views.empty() &&
      std::ranges::none_of(choice.states, IsTerminal)) {
    return Ok();
  }
  return Fail(Error{ErrorCode::kInvalid,
                    "no state of a job that could be stopped: " + Printable(text),
                    "Queued, Placing, Preparing, Running, Uploading, Interrupted"}
                  .Id("ATH-R0011"));
}

Status ChooseTags(const Json& tags, JobChoice& choice) {
  for (const auto& tag : tags) ATHANOR_CHECK_OK(ChooseTag(tag.get<std::string>(), choice));
  return Ok();
}

bool AreTexts(const Json& value) {
  return value.is_array() && value.size() <= kMostNamed &&
         std::ranges::all_of(value, [](const Json& each) { return each.is_string(); });
}

Result<Wanted> WantedIn(const std::string& text) {
  ATHANOR_TRY(const Json body, ParseJson(text));
  if (!body.is_object())
    return NotUnderstood("the request is no object", "see /api/v1/openapi.json");
  Wanted wanted;
  for (const auto& [key, value] : body.items()) {
    bool fits = true;
    if (key == "jobs") {
      fits = AreTexts(value);
      for (size_t i = 0; fits && i < value.size(); ++i) wanted.named.push_back(value[i]);
    } else if (key == "state" && value.is_string()) {
      ATHANOR_CHECK_OK(ChooseLiveStates(value.get<std::string>(), wanted.choice));
    } else if (key == "tags" && AreTexts(value)) {
      ATHANOR_CHECK_OK(ChooseTags(value, wanted.choice));
    } else if (key == "older" && value.is_string()) {
      ATHANOR_CHECK_OK(ChooseAge(value.get<std::string>(), wanted.choice));
    } else if (key == "experiment" && value.is_string()) {
      wanted.choice.experiment = value.get<std::string>();
    } else if (key == "name" && value.is_string()) {
      wanted.choice.name = value.get<std::string>();
    } else if ((key == "all" || key == "dry_run") && value.is_boolean()) {
      (key == "all" ? wanted.all : wanted.dry_run) = value.get<bool>();
    } else if (key == "grace_ms" && value.is_number_unsigned()) {
      wanted.grace = Millis(value.get<int64_t>());
    } else {
      fits = false;
    }
    // Dropped, it would stop more than was asked for.
    if (!fits) {
      return NotUnderstood("\"" + Printable(key.substr(0, 64)) + "\" is not understood",
                           "see StopMany in /api/v1/openapi.json; at most " +
                               std::to_string(kMostNamed) + " jobs are named");
    }
  }
  if (wanted.named.empty() == !wanted.chooses()) {
    return NotUnderstood(
        "it is not said which jobs to stop",
        "jobs by name, or one or more of state, experiment, tags, name and older, or all");
  }
  return wanted;
}

// Stops what it is given, some at a time, and answers when all of that is durable.
class StopMany : public std::enable_shared_from_this<StopMany> {
 public:
  StopMany(DoorContext& context, Call call, Wanted wanted, std::vector<JobId> jobs)
      : context_(context),
        call_(std::move(call)),
        wanted_(std::move(wanted)),
        jobs_(std::move(jobs)) {}

  void Go() {
    auto open = std::make_shared<size_t>(1);
    const auto done = [self = shared_from_this(), open](const Status& status) {
      if (!status && status.error().code != ErrorCode::kConflict) self->failed_ = status;
      if (--*open > 0) return;
      if (!self->failed_.ok()) return self->call_.Refuse(self->failed_.error());
      if (self->next_ == self->jobs_.size()) return self->Answer();
      self->context_.loop.Post([self] { self->Go(); });
    };
    for (size_t i = 0; i < kAtOnce && next_ < jobs_.size(); ++i) {
      const auto* live = context_.engine.Live(jobs_[next_++]);
      if (live == nullptr || !Fits(*live)) continue;
      HoldsRoom(live->state) ? ++stopping_ : ++stopped_;
      if (wanted_.dry_run) continue;
      ++*open;
      context_.engine.Apply(live->id,
                            StopAsked{{"user_stop", "stopped by " + call_.caller.user,
                                       "ath retry " + ShellQuote(live->spec.name), ""},
                                      call_.caller.user,
                                      wanted_.grace.value_or(live->spec.limits.stop_grace)},
                            done);
    }
    done(Ok());
  }

 private:
  // Still: one that waited when it was chosen may run by now.
  bool Fits(const JobRecord& record) const {
    return !IsTerminal(record.state) &&
           (wanted_.choice.states.empty() ||
            std::ranges::find(wanted_.choice.states, record.state) != wanted_.choice.states.end());
  }

  void Answer() const {
    call_.Json(200, DumpJson(athanor::Json{{"matched", stopped_ + stopping_},
                                           {"stopped", stopped_},
                                           {"stopping", stopping_}}));
  }

  DoorContext& context_;
  const Call call_;
  const Wanted wanted_;
  const std::vector<JobId> jobs_;
  size_t next_ = 0;
  uint64_t stopped_ = 0;
  uint64_t stopping_ = 0;
  Status failed_;
};

void Stop(DoorContext& context, const Call& call) {
  auto wanted = WantedIn(call.request.body);
  if (!wanted) return call.Refuse(wanted.error());
  if (!wanted->named.empty()) {
    std::vector<JobId> jobs;
    for (const auto& name : wanted->named) {
      const auto record = FindJob(context, name);
      if (!record) return call.Refuse(record.error());
      jobs.push_back(record->id);
    }
    std::ranges::sort(jobs);
    jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
    return std::make_shared<StopMany>(context, call, std::move(*wanted), std::move(jobs))->Go();
  }
  OnReader(context, call, [&context, call, wanted = std::move(*wanted)] {
    JobQuery query;
    query.live_only = true;
    query.states = wanted.choice.states;
    query.experiment = wanted.choice.experiment;
    query.limit = SIZE_MAX;
    auto found = context.jobs.List(query);
    if (!found) return call.Refuse(found.error());
    KeepChosen(context, wanted.choice, *found);
    std::vector<JobId> jobs;
    for (const auto& job : *found) jobs.push_back(job.id);
    context.loop.Post([&context, call, wanted, jobs = std::move(jobs)]() mutable {
      std::make_shared<StopMany>(context, call, wanted, std::move(jobs))->Go();
    });
  });
}

}  // namespace

std::vector<DoorRoute> StopRoutes(DoorContext& context) {
  return {{"POST", "/api/v1/stop", "jobs.stop_many",
           [&context](const Call& call) { Stop(context, call); }}};
}

}  // namespace athanor
