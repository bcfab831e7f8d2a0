// Create, look, stop, change and delete training jobs.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/text.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/service.h"
#include "door/sagemaker/shapes.h"
#include "door/sagemaker/source.h"
#include "door/sagemaker/view.h"
#include "steer/admission.h"
#include "steer/hub.h"
#include "steer/removal.h"

namespace athanor::sagemaker {
namespace {

// The SDK looks five seconds after it created the job, then half a minute later: an answer that
// waits for a short job's end saves it that half minute.
constexpr Millis kHold{20'000};
constexpr Millis kYoung{15'000};
AwsError Taken(const std::string& name) {
  return {400, "ResourceInUse",
          "Training job names must be unique within an AWS account and region, and there is a "
          "training job " +
              name + " already"};
}

Status CheckBuckets(ObjectStore& objects, const TrainingRequest& request) {
  for (const auto& bucket : request.buckets) {
    if (objects.Bucket(bucket)) continue;
    return Fail(ErrorCode::kInvalid, "the bucket s3://" + Printable(bucket) + " does not exist",
                "aws s3 mb s3://" + bucket);
  }
  return Ok();
}

}  // namespace

Status CompleteRequest(DoorContext& context, TrainingRequest& request) {
  ATHANOR_CHECK_OK(CheckBuckets(context.objects, request));
  auto& spec = request.spec;
  if (request.program.empty() || request.source.empty()) return Ok();
  ATHANOR_TRY(const auto archive, ObjectUri::Parse(request.source));
  auto unpacked = UnpackSource(context.objects, context.blobs, archive, request.program,
                               JoinPath(context.info.home, "tmp"));
  if (!unpacked) {
    Error error = unpacked.error();
    error.code = ErrorCode::kInvalid;
    error.what = "sagemaker_submit_directory " + Printable(request.source) + ": " + error.what;
    return Fail(std::move(error));
  }
  spec.source = unpacked->source;
  const bool module = !unpacked->has_program && EndsWith(request.program, ".py");
  if (module) {
    return Fail(ErrorCode::kInvalid, "sagemaker_program " + Printable(request.program) +
                                         " is not in " + Printable(request.source));
  }
  if (spec.command.empty()) {
    spec.command = CommandFor(request.program, request.args);
    spec.entry = request.program;
  }
  if (unpacked->has_requirements && !EndsWith(request.program, ".sh")) {
    spec.environment.requirements = "requirements.txt";
  }
  return Ok();
}

void Service::CreateTrainingJob(Asked asked, Answered answered) {
  auto images = ImageMap::Read(JoinPath(context_.info.home, "images.yaml"));
  if (!images) return answered(tl::unexpected(Refusal(images.error())));
  auto request =
      ReadTrainingRequest(asked.body, {*images, LookAtHost(), context_.inventory.gpus > 0});
  if (!request) return answered(tl::unexpected(request.error()));
  auto taken = context_.jobs.FindKey("sagemaker:" + request->spec.name);
  if (taken && *taken) {
    return answered(tl::unexpected(Taken(request->spec.name)));
  }
  // The source may be large: unpacked away from the control thread.
  auto held = std::make_shared<TrainingRequest>(std::move(*request));
  bool started = context_.transfers.Submit([this, held, asked, answered] {
    auto status = CompleteRequest(context_, *held);
    context_.loop.Post([this, held, asked, answered, status] {
      if (!status) return answered(tl::unexpected(Refusal(status.error())));
      SubmitJob(std::move(*held), asked, answered);
    });
  });
  if (!started) {
    answered(tl::unexpected(AwsError{503, "ServiceUnavailable", "the server is stopping"}));
  }
}

void Service::SubmitJob(TrainingRequest request, const Asked& asked, const Answered& answered) {
  const auto name = request.spec.name;
  auto draft = context_.admission.Draft(std::move(request.spec), "sagemaker:" + name, asked.user);
  if (!draft) return answered(tl::unexpected(Refusal(draft.error())));
  context_.engine.Submit(std::move(*draft), [name, region = asked.region,
                                             answered](Result<Engine::Accepted> accepted) {
    const bool twice = accepted ? accepted->duplicate : accepted.error().id == "ATH-S0201";
    if (twice) return answered(tl::unexpected(Taken(name)));
    if (!accepted) return answered(tl::unexpected(Refusal(accepted.error())));
    answered(Json({{"TrainingJobArn", TrainingJobArn(region, name)}}));
  });
}

void Service::DescribeTrainingJob(Asked asked, Answered answered) {
  auto record = Named(asked, "TrainingJobName");
  if (!record) return answered(tl::unexpected(record.error()));
  if (Hold(*record, asked, answered)) return;
  Show(*record, asked, answered);
}

void Service::Show(const JobRecord& record, const Asked& asked, const Answered& answered) {
  OnPool(
      [this, record, region = asked.region]() -> Answer {
        auto events = context_.jobs.Events(record.id, 0, 10'000);
        if (!events) return tl::unexpected(Refusal(events.error()));
        auto metrics = context_.series.Summaries(record.id, ResumesOf(record));
        auto changes = context_.documents.Find(kChangesKind, record.id.ToString());
        Json changed;
        if (changes && *changes) {
          if (auto parsed = ParseJson((*changes)->text)) changed = std::move(*parsed);
        }
        return DescribeView(
            {record, *events, metrics ? *metrics : std::vector<SeriesSummary>{}, region, &changed});
      },
      answered);
}

bool Service::Hold(const JobRecord& record, const Asked& asked, const Answered& answered) {
  const auto now = context_.clock.Wall();
  std::erase_if(looked_at_, [&](const auto& entry) {
    return now.ms - entry.second.ms > kYoung.count() + kHold.count();
  });
  if (!asked.from_sdk || IsTerminal(record.state) || record.stop ||
      now.ms - record.created.ms > kYoung.count() ||
      !looked_at_.try_emplace(record.id.ToString(), now).second) {
    return false;
  }
  struct Wait {
    Hub::Id listener = 0;
    Executor::TimerId timer = 0;
    bool over = false;
  };
  auto wait = std::make_shared<Wait>();
  auto answer = [this, wait, asked, answered, id = record.id] {
    if (wait->over) return;
    wait->over = true;
    context_.hub.Forget(wait->listener);
    context_.loop.Cancel(wait->timer);
    auto found = FindJob(context_, id.ToString());
    if (!found) return answered(tl::unexpected(NotFound()));
    Show(*found, asked, answered);
  };
  wait->timer = context_.loop.After(kHold, answer);
  wait->listener = context_.hub.Listen(record.id, [this, answer, id = record.id](JobId, News news) {
    if (news != News::kState) return;
    // News of an earlier step may come while the end is being stored.
    auto known = FindJob(context_, id.ToString());
    if (known && !IsTerminal(known->state)) return;
    // Not from within the hub's walk over its listeners.
    context_.loop.Post(answer);
  });
  return true;
}

void Service::StopTrainingJob(Asked asked, Answered answered) {
  auto record = Named(asked, "TrainingJobName");
  if (!record) return answered(tl::unexpected(record.error()));
  if (IsTerminal(record->state)) {
    return answered(
        tl::unexpected(Invalid("The request was rejected because the training job is in status " +
                               StatusOf(*record) + ".")));
  }
  StopAsked event{
      {"user_stop", "stopped by " + asked.user, "ath retry " + ShellQuote(record->spec.name), ""},
      asked.user,
      record->spec.limits.stop_grace};
  context_.engine.Apply(record->id, event, [answered](const Status& status) {
    // It may have ended meanwhile; that it is over is what was wanted.
    if (!status && status.error().code != ErrorCode::kConflict) {
      return answered(tl::unexpected(Refusal(status.error())));
    }
    answered(Json::object());
  });
}

void Service::UpdateTrainingJob(Asked asked, Answered answered) {
  auto record = Named(asked, "TrainingJobName");
  if (!record) return answered(tl::unexpected(record.error()));
  const bool over = IsTerminal(record->state);
  if (over && !asked.body.contains("ResourceConfig")) {
    return answered(
        tl::unexpected(Invalid("The request was rejected because the training job is in status " +
                               StatusOf(*record) + ".")));
  }
  Json changes = asked.body;
  changes.erase("TrainingJobName");
  for (const auto& [key, value] : changes.items()) {
    if (key == "ProfilerConfig" || key == "ProfilerRuleConfigurations" || key == "ResourceConfig" ||
        key == "RemoteDebugConfig") {
      continue;
    }
    return answered(tl::unexpected(Invalid("UpdateTrainingJob cannot change " + Printable(key))));
  }
  OnPool(
      [this, record = *record, changes, region = asked.region]() -> Answer {
        const auto id = record.id.ToString();
        auto earlier = context_.documents.Find(kChangesKind, id);
        if (!earlier) return tl::unexpected(Refusal(earlier.error()));
        Json all = Json::object();
        if (*earlier) {
          if (auto parsed = ParseJson((*earlier)->text)) all = std::move(*parsed);
        }
        all.merge_patch(changes);
        auto kept = context_.documents.Put(kChangesKind, id, DumpJson(all), context_.clock.Wall());
        if (!kept) return tl::unexpected(Refusal(kept.error()));
        return Json({{"TrainingJobArn", TrainingJobArn(region, record.spec.name)}});
      },
      answered);
}

void Service::DeleteTrainingJob(Asked asked, Answered answered) {
  auto record = Named(asked, "TrainingJobName");
  if (!record) return answered(tl::unexpected(record.error()));
  if (!IsTerminal(record->state)) {
    return answered(tl::unexpected(
        AwsError{400, "ResourceInUse",
                 "The training job is " + StatusOf(*record) + ". Stop it first: StopTrainingJob"}));
  }
  (void)context_.documents.Remove(kChangesKind, record->id.ToString()).ok();
  (void)context_.documents.Remove(kTagsKind, "training-job/" + record->spec.name).ok();
  context_.removal.RemoveJob(record->id, [this, answered](const Status& status) {
    context_.loop.Post([answered, status] {
      if (!status) return answered(tl::unexpected(Refusal(status.error())));
      answered(Json::object());
    });
  });
}

// The job that would evaluate a rule: it is not run, and says so.
void Service::DescribeProcessingJob(Asked asked, Answered answered) {
  const auto name = asked.body.value("ProcessingJobName", "");
  const auto last = name.rfind('-');
  const auto before = last == std::string::npos || last == 0 ? last : name.rfind('-', last - 1);
  if (before == std::string::npos) return answered(tl::unexpected(NotFound()));
  const auto kind = name.substr(before + 1, last - before - 1);
  const size_t index = std::strtoull(name.c_str() + last + 1, nullptr, 10);
  const char* list = kind == "debugrule"      ? "DebugRuleConfigurations"
                     : kind == "profilerrule" ? "ProfilerRuleConfigurations"
                                              : nullptr;
  auto record = Find(name.substr(0, before));
  if (!record) return answered(tl::unexpected(Refusal(record.error())));
  if (!list || !*record) return answered(tl::unexpected(NotFound()));
  auto request = ParseJson((*record)->spec.request.empty() ? "{}" : (*record)->spec.request);
  if (!request || !request->contains(list) || index == 0 || index > (*request)[list].size()) {
    return answered(tl::unexpected(NotFound()));
  }
  const auto& rule = (*request)[list][index - 1];
  Json view = {{"ProcessingJobName", name},
               {"ProcessingJobArn", "arn:aws:sagemaker:" + asked.region + ":" + kAwsAccount +
                                        ":processing-job/" + name},
               {"ProcessingJobStatus", "Stopped"},
               {"ExitMessage", kNotEvaluated},
               {"CreationTime", Seconds((*record)->created)},
               {"LastModifiedTime", Seconds((*record)->created)},
               {"TrainingJobArn", TrainingJobArn(asked.region, (*record)->spec.name)},
               {"AppSpecification", {{"ImageUri", rule.value("RuleEvaluatorImage", "")}}},
               {"ProcessingResources",
                {{"ClusterConfig",
                  {{"InstanceCount", 1},
                   {"InstanceType", rule.value("InstanceType", "ml.t3.medium")},
                   {"VolumeSizeInGB", rule.value("VolumeSizeInGB", 0)}}}}}};
  if (rule.contains("RuleParameters")) view["Environment"] = rule["RuleParameters"];
  answered(std::move(view));
}

}  // namespace athanor::sagemaker
