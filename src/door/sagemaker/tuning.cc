// Tuning jobs: studies whose trials are training jobs.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/text/text.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/paging.h"
#include "door/sagemaker/service.h"
#include "door/sagemaker/shapes.h"
#include "door/sagemaker/trials.h"
#include "door/sagemaker/tuning_spec.h"
#include "door/sagemaker/tuning_view.h"
#include "job/codec.h"
#include "steer/admission.h"
#include "study/studies.h"
#include "tune/space.h"

namespace athanor::sagemaker {
namespace {

AwsError TuningNotFound() { return {400, "ResourceNotFound", "Requested resource not found."}; }

AwsError TuningRefusal(const Error& error) {
  return error.code == ErrorCode::kNotFound ? TuningNotFound() : Refusal(error);
}

tl::expected<std::string, AwsError> NameIn(const Json& body) {
  ShapeCheck check;
  const auto name =
      check.Text(body, "HyperParameterTuningJobName", "", {1, 32, kTuningName}, Need::kRequired);
  if (auto error = check.Error()) return tl::unexpected(*error);
  return *name;
}

// Some values for every parameter of one definition, to see whether its jobs could be made.
Json SampleParams(const StudySpec& spec, const std::string& definition) {
  Json params = Json::object();
  const auto space = ParseJson(spec.space).value_or(Json::array());
  for (const auto& each : space) {
    const auto name = each.value("name", "");
    if (!definition.empty() && name != kDefinition && !StartsWith(name, definition + kOf)) continue;
    if (each.contains("low")) {
      params[name] = each["type"] == "int" ? Json(static_cast<int64_t>(each["low"].get<double>()))
                                           : each["low"];
    } else if (each.contains("choices")) {
      params[name] = name == kDefinition ? Json(definition) : each["choices"][0];
    }
  }
  return params;
}

Answer InProgressOnly(const StudyRecord& record) {
  return tl::unexpected(Invalid("The request was rejected because the tuning job is in status " +
                                TuningStatusOf(record)));
}

}  // namespace

void Service::CreateTuningJob(Asked asked, Answered answered) {
  auto spec = ReadTuningRequest(asked.body);
  if (!spec) return answered(tl::unexpected(spec.error()));
  auto images = ImageMap::Read(JoinPath(context_.info.home, "images.yaml"));
  if (!images) return answered(tl::unexpected(Refusal(images.error())));
  auto requests = std::make_shared<std::map<std::string, TrainingRequest>>();
  for (const auto& definition : DefinitionNames(asked.body)) {
    const auto body =
        TrainingBody(asked.body, spec->name + "-000-00000000", SampleParams(*spec, definition));
    auto request = ReadTrainingRequest(body, {*images, LookAtHost(), context_.inventory.gpus > 0});
    if (!request) return answered(tl::unexpected(request.error()));
    requests->emplace(definition, std::move(*request));
  }
  auto held = std::make_shared<StudySpec>(std::move(*spec));
  // Sources may be large: unpacked away from the control thread.
  const bool started = context_.transfers.Submit([this, requests, held, asked, answered] {
    Status status;
    Json jobs = Json::object();
    for (auto& [definition, request] : *requests) {
      if (status) status = CompleteRequest(context_, request);
      JobSpec job;
      job.source = request.spec.source;
      job.environment.requirements = request.spec.environment.requirements;
      jobs[definition] = ToJson(job);
    }
    held->request = DumpJson(Json{{"tuning", asked.body}, {"jobs", std::move(jobs)}});
    context_.loop.Post([this, held, asked, answered, status] {
      if (!status) return answered(tl::unexpected(Refusal(status.error())));
      EnterTuning(*held, asked, answered);
    });
  });
  if (!started) {
    answered(tl::unexpected(AwsError{503, "ServiceUnavailable", "the server is stopping"}));
  }
}

void Service::EnterTuning(const StudySpec& spec, const Asked& asked, const Answered& answered) {
  const auto name = spec.name;
  for (const auto& definition : DefinitionNames(asked.body)) {
    const TrialOrder first{{}, spec, asked.user, 1, "", 0};
    auto trial = TrialSpec(context_, first, SampleParams(spec, definition));
    auto draft =
        trial ? context_.admission.Draft(std::move(*trial), "", asked.user) : Fail(trial.error());
    if (!draft) return answered(tl::unexpected(Refusal(draft.error())));
  }
  context_.studies->Create(
      spec, TuningKey(name), asked.user,
      [this, name, asked, answered](const Result<Studies::Created>& created) {
        if (!created) return answered(tl::unexpected(Refusal(created.error())));
        if (created->duplicate) {
          return answered(tl::unexpected(
              AwsError{400, "ResourceInUse", "there is a tuning job of this name already"}));
        }
        OnPool(
            [this, name, asked]() -> Answer {
              // For its tags alone.
              auto kept = context_.documents.Put(kTuningKind, name,
                                                 DumpJson(Json({{"request", asked.body}})),
                                                 context_.clock.Wall());
              if (!kept) return tl::unexpected(Refusal(kept.error()));
              return Json({{"HyperParameterTuningJobArn", TuningJobArn(asked.region, name)}});
            },
            answered);
      });
}

void Service::DescribeTuningJob(Asked asked, Answered answered) {
  auto name = NameIn(asked.body);
  if (!name) return answered(tl::unexpected(name.error()));
  context_.studies->Show(
      TuningKey(*name), 0, Millis(0), [this, asked, answered](const Result<StudyRecord>& study) {
        if (!study) return answered(tl::unexpected(TuningRefusal(study.error())));
        OnPool(
            [this, study = *study, asked]() -> Answer {
              const auto* best = study.Best();
              const auto id = best ? JobId::Parse(best->job) : std::nullopt;
              auto job = id ? context_.jobs.Find(*id) : Fail(ErrorCode::kNotFound, "");
              return DescribeTuningView(study, asked.region, job ? &*job : nullptr);
            },
            answered);
      });
}

void Service::StopTuningJob(Asked asked, Answered answered) {
  auto name = NameIn(asked.body);
  if (!name) return answered(tl::unexpected(name.error()));
  const auto key = TuningKey(*name);
  context_.studies->Show(key, 0, Millis(0),
                         [this, key, asked, answered](const Result<StudyRecord>& study) {
                           if (!study)
                             return answered(tl::unexpected(TuningRefusal(study.error())));
                           if (IsOver(study->state)) return answered(InProgressOnly(*study));
                           context_.studies->StopStudy(
                               key, asked.user, [answered](const Result<StudyRecord>& stopped) {
                                 // It may have ended meanwhile; that it is over is what was wanted.
                                 if (!stopped && stopped.error().code != ErrorCode::kConflict) {
                                   return answered(tl::unexpected(TuningRefusal(stopped.error())));
                                 }
                                 answered(Json::object());
                               });
                         });
}

void Service::DeleteTuningJob(Asked asked, Answered answered) {
  auto name = NameIn(asked.body);
  if (!name) return answered(tl::unexpected(name.error()));
  context_.studies->Remove(TuningKey(*name),
                           [this, name = *name, answered](const Result<StudyRecord>& gone) {
                             if (!gone)
                               return answered(tl::unexpected(TuningRefusal(gone.error())));
                             OnPool(
                                 [this, name]() -> Answer {
                                   auto removed = context_.documents.Remove(kTuningKind, name);
                                   if (!removed) return tl::unexpected(Refusal(removed.error()));
                                   return Json::object();
                                 },
                                 answered);
                           });
}

void Service::ListTuningJobs(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto page = PageOf(asked.body, check);
  const auto contains = check.Text(asked.body, "NameContains", "", {0, 63}).value_or("");
  const auto status = check.Text(asked.body, "StatusEquals", "", {}).value_or("");
  const auto sort =
      check.Text(asked.body, "SortBy", "", {.one_of = {"Name", "Status", "CreationTime"}})
          .value_or("Name");
  const auto order =
      check.Text(asked.body, "SortOrder", "", {.one_of = {"Ascending", "Descending"}})
          .value_or("Ascending");
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  context_.studies->List([=](const Result<std::vector<StudyRecord>>& all) {
    if (!all) return answered(tl::unexpected(Refusal(all.error())));
    std::vector<Json> rows;
    for (const auto& record : *all) {
      if (record.spec.origin != "sagemaker") continue;
      if (record.spec.name.find(contains) == std::string::npos) continue;
      if (!status.empty() && TuningStatusOf(record) != status) continue;
      rows.push_back(TuningSummaryView(record, asked.region));
    }
    const auto* key = sort == "Name"     ? "HyperParameterTuningJobName"
                      : sort == "Status" ? "HyperParameterTuningJobStatus"
                                         : "CreationTime";
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const Json& a, const Json& b) { return a.at(key) < b.at(key); });
    if (order == "Descending") std::reverse(rows.begin(), rows.end());
    answered(Cut(Json(rows), page, "HyperParameterTuningJobSummaries"));
  });
}

void Service::ListTrainingJobsOfTuningJob(Asked asked, Answered answered) {
  auto name = NameIn(asked.body);
  if (!name) return answered(tl::unexpected(name.error()));
  ShapeCheck check;
  const auto page = PageOf(asked.body, check);
  const auto status = check.Text(asked.body, "StatusEquals", "", {}).value_or("");
  const auto sort =
      check
          .Text(asked.body, "SortBy", "",
                {.one_of = {"Name", "CreationTime", "Status", "FinalObjectiveMetricValue"}})
          .value_or("Name");
  const auto order =
      check.Text(asked.body, "SortOrder", "", {.one_of = {"Ascending", "Descending"}})
          .value_or("Ascending");
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  auto rows_of = [this, asked, page, status, sort, order](const StudyRecord& study) -> Answer {
    std::vector<Json> rows;
    for (const auto& trial : study.trials) {
      const auto id = JobId::Parse(trial.job);
      if (!id) continue;
      auto job = context_.jobs.Find(*id);
      auto row = TrialSummaryView(study, trial, asked.region, job ? &*job : nullptr);
      if (status.empty() || row["TrainingJobStatus"] == status) rows.push_back(std::move(row));
    }
    constexpr char kFinal[] = "FinalHyperParameterTuningJobObjectiveMetric";
    std::stable_sort(rows.begin(), rows.end(), [&](const Json& a, const Json& b) {
      if (sort == "FinalObjectiveMetricValue") {
        if (!a.contains(kFinal) || !b.contains(kFinal))
          return a.contains(kFinal) && !b.contains(kFinal);
        return a[kFinal]["Value"] < b[kFinal]["Value"];
      }
      const auto* key = sort == "Name"     ? "TrainingJobName"
                        : sort == "Status" ? "TrainingJobStatus"
                                           : "CreationTime";
      return a.at(key) < b.at(key);
    });
    if (order == "Descending") std::reverse(rows.begin(), rows.end());
    return Cut(Json(rows), page, "TrainingJobSummaries");
  };
  context_.studies->Show(TuningKey(*name), 0, Millis(0),
                         [this, rows_of, answered](const Result<StudyRecord>& study) {
                           if (!study)
                             return answered(tl::unexpected(TuningRefusal(study.error())));
                           OnPool([rows_of, study = *study] { return rows_of(study); }, answered);
                         });
}

}  // namespace athanor::sagemaker
