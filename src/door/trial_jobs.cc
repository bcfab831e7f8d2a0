#include "door/trial_jobs.h"

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/sagemaker/trials.h"
#include "steer/admission.h"
#include "tune/space.h"

namespace athanor {
namespace {

constexpr size_t kLastLines = 12;
constexpr size_t kMostWords = 4096;

struct Made {
  JobSpec spec;
  std::string key;
};

Result<Made> MakeTrial(const DoorContext& context, const TrialOrder& order) {
  ATHANOR_TRY(const auto params, ParseJson(order.params));
  if (order.spec.origin == "sagemaker") {
    ATHANOR_TRY(auto spec, sagemaker::TrialSpec(context, order, params));
    auto key = "sagemaker:" + spec.name;
    return Made{std::move(spec), std::move(key)};
  }
  return Made{TrialJob(order.spec, params, order.trial), order.key()};
}

}  // namespace

void TrialJobs::Submit(const TrialOrder& order, std::function<void(Result<JobId>)> done) {
  auto made = MakeTrial(context_, order);
  if (!made) return done(tl::unexpected(made.error()));
  auto draft = context_.admission.Draft(std::move(made->spec), made->key, order.user);
  if (!draft) return done(tl::unexpected(draft.error()));
  // Every trial has the study's source and most of its parameters: that is not worth reporting.
  draft->same_as.clear();
  if (!order.resume_job.empty()) draft->parent = draft->resume_job = order.resume_job;
  context_.engine.Submit(std::move(*draft), [done](Result<Engine::Accepted> accepted) {
    if (!accepted) return done(tl::unexpected(accepted.error()));
    done(accepted->id);
  });
}

void TrialJobs::Stop(JobId job, const Cause& cause) {
  auto record = FindJob(context_, job.ToString());
  if (!record || IsTerminal(record->state) || record->stop) return;
  context_.engine.Apply(job, StopAsked{cause, "tuning", record->spec.limits.stop_grace});
}

int64_t TrialJobs::LiveCostMicros(JobId job) {
  const auto* live = context_.engine.Live(job);
  return live ? CostMicros(*live) : 0;
}

Result<TrialSight> TrialJobs::Look(JobId job, const std::string& metric) {
  ATHANOR_TRY(const auto record, context_.jobs.Find(job));
  TrialSight sight;
  sight.state = record.state;
  sight.cause = record.cause;
  sight.cost_micros = CostMicros(record);
  for (const auto& attempt : record.attempts) sight.held_ms += attempt.held_ms;
  auto points = context_.series.Read(job, metric, false, ResumesOf(record));
  if (!points && points.error().code == ErrorCode::kNotFound) return sight;
  if (!points) return tl::unexpected(points.error());
  int64_t place = 0;
  for (const auto& point : *points) {
    ++place;
    sight.points.push_back({point.step.value_or(place), point.value});
  }
  return sight;
}

Result<std::optional<JobId>> TrialJobs::FindKey(const TrialOrder& order) {
  const auto key =
      order.spec.origin == "sagemaker" ? "sagemaker:" + sagemaker::TrialName(order) : order.key();
  ATHANOR_TRY(const auto hit, context_.jobs.FindKey(key));
  if (!hit) return std::optional<JobId>();
  return std::optional(hit->id);
}

LastWords TrialJobs::Listen(JobId job) {
  LastWords words;
  if (auto cursor = context_.logs.Tail(job, kLastLines)) {
    if (auto entries = context_.logs.Read(job, *cursor, 64 << 10)) {
      std::string text;
      for (const auto& entry : *entries) {
        if (entry.stream != LogStream::kSetup) text += entry.bytes;
      }
      auto lines = Split(Trim(text), '\n');
      if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
      for (auto& line : lines) line = Printable(line);
      words.lines = Join(lines, "\n").substr(0, kMostWords);
    }
  }
  if (auto summaries = context_.series.Summaries(job)) {
    for (const auto& summary : *summaries) words.metrics.push_back(summary.name);
  }
  return words;
}

Status CheckTrials(const DoorContext& context, const StudySpec& spec, const std::string& user) {
  ATHANOR_TRY(const auto json, ParseJson(spec.space));
  ATHANOR_TRY(const auto space, tune::Space::Parse(json));
  Json always = Json::object(), every = Json::object();
  for (const auto& parameter : space.parameters()) {
    Json value = parameter.low;
    if (parameter.kind == tune::Kind::kInt) value = static_cast<int64_t>(parameter.low);
    if (!parameter.choices.empty()) {
      ATHANOR_TRY(value, ParseJson(parameter.choices.front()));
    }
    every[parameter.name] = value;
    if (parameter.conditions.empty()) always[parameter.name] = value;
  }
  ATHANOR_CHECK_OK(context.admission.Draft(TrialJob(spec, every, 1), "", user));
  auto without = context.admission.Draft(TrialJob(spec, always, 1), "", user);
  if (without) return Ok();
  Error error = without.error();
  error.hint +=
      (error.hint.empty() ? "" : "\n") +
      std::string("a conditional parameter needs a value under params, for trials without it");
  return Fail(std::move(error));
}

}  // namespace athanor
