// Tuning jobs are accepted, checked and kept; nothing runs them yet, and their status says so.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "door/sagemaker/asked.h"
#include "door/sagemaker/paging.h"
#include "door/sagemaker/service.h"
#include "door/sagemaker/shapes.h"
#include "door/sagemaker/view.h"

namespace athanor::sagemaker {
namespace {

constexpr char kTuningName[] = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,31}";
constexpr char kNotRun[] =
    "the tuning job is kept, but was not run: this version does not run tuning jobs yet. Its "
    "training jobs can be created one by one";
// A client that waits would wait for ever for one that is in progress.
constexpr char kStatus[] = "Failed";

std::string Arn(const std::string& region, const std::string& name) {
  return "arn:aws:sagemaker:" + region + ":" + kAwsAccount + ":hyper-parameter-tuning-job/" + name;
}

void CheckConfig(const Json& body, ShapeCheck& check) {
  const auto* config =
      check.Object(body, "HyperParameterTuningJobConfig", "", Need::kRequired);
  if (!config) return;
  const char* path = "hyperParameterTuningJobConfig";
  check.Text(*config, "Strategy", path, {.one_of = {"Bayesian", "Random", "Hyperband", "Grid"}},
             Need::kRequired);
  check.Text(*config, "TrainingJobEarlyStoppingType", path, {.one_of = {"Off", "Auto"}});
  check.Number(*config, "RandomSeed", path, {0});
  if (const auto* limits = check.Object(*config, "ResourceLimits", path, Need::kRequired)) {
    const auto at = std::string(path) + ".resourceLimits";
    check.Number(*limits, "MaxParallelTrainingJobs", at, {1}, Need::kRequired);
    check.Number(*limits, "MaxNumberOfTrainingJobs", at, {1});
    check.Number(*limits, "MaxRuntimeInSeconds", at, {120, 15'768'000});
  }
}

// Of one definition, or of the whole job.
void CheckRanges(const Json& ranges, ShapeCheck& check, size_t& count) {
  const char* path = "parameterRanges";
  for (const char* kind : {"ContinuousParameterRanges", "IntegerParameterRanges"}) {
    const auto* list = check.List(ranges, kind, path, 30);
    for (size_t i = 0; list && i < list->size(); ++i) {
      ++count;
      const auto at = Member(Below(path, kind), i);
      const auto& range = (*list)[i];
      const auto whose =
          " (of " + check.Text(range, "Name", at, {1, 256}, Need::kRequired).value_or("") + ")";
      const auto low = check.Text(range, "MinValue", at, {1, 256}, Need::kRequired);
      const auto high = check.Text(range, "MaxValue", at, {1, 256}, Need::kRequired);
      const auto scale =
          check
              .Text(range, "ScalingType", at,
                    {.one_of = {"Auto", "Linear", "Logarithmic", "ReverseLogarithmic"}})
              .value_or("Auto");
      if (!low || !high) continue;
      char *low_end = nullptr, *high_end = nullptr;
      const double from = std::strtod(low->c_str(), &low_end);
      const double to = std::strtod(high->c_str(), &high_end);
      if (*low_end != 0 || *high_end != 0 || !(from <= to)) {
        check.Note(at + ".minValue", *low, "Member must be a number not above maxValue " + *high + whose);
      } else if (scale == "Logarithmic" && from <= 0) {
        check.Note(at + ".minValue", *low, "Member must be above 0 for Logarithmic scaling" + whose);
      } else if (scale == "ReverseLogarithmic" && (from < 0 || to >= 1)) {
        check.Note(at + ".maxValue", *high,
                   "Member must lie within 0 <= x < 1 for ReverseLogarithmic scaling" + whose);
      }
    }
  }
  const auto* choices = check.List(ranges, "CategoricalParameterRanges", path, 30);
  for (size_t i = 0; choices && i < choices->size(); ++i) {
    ++count;
    const auto at = Member("parameterRanges.categoricalParameterRanges", i);
    check.Text((*choices)[i], "Name", at, {1, 256}, Need::kRequired);
    check.List((*choices)[i], "Values", at, 30, Need::kRequired);
  }
}

// The objective must be a metric that the jobs' definition reads from their log.
std::optional<AwsError> CheckObjective(const Json& config, const Json& definition) {
  const auto objective = config.value("HyperParameterTuningJobObjective", Json::object());
  const auto name = objective.is_object() ? objective.value("MetricName", "") : "";
  const auto algorithm = definition.value("AlgorithmSpecification", Json::object());
  if (name.empty() || !algorithm.is_object() || !algorithm.contains("MetricDefinitions")) {
    return std::nullopt;
  }
  std::vector<std::string> known;
  for (const auto& metric : algorithm["MetricDefinitions"]) {
    known.push_back(metric.value("Name", ""));
    if (known.back() == name) return std::nullopt;
  }
  return Invalid("The objective metric " + Printable(name) + " is not in MetricDefinitions: [" +
                 Join(known, ", ") + "]");
}

// The SDK sends one of the two and reads the other.
void AddBothResources(Json& definition) {
  if (!definition.is_object()) return;
  constexpr char kOurs[] = "HyperParameterTuningResourceConfig";
  if (definition.contains(kOurs) && !definition.contains("ResourceConfig")) {
    definition["ResourceConfig"] = definition[kOurs];
  } else if (definition.contains("ResourceConfig") && !definition.contains(kOurs)) {
    definition[kOurs] = definition["ResourceConfig"];
  }
  if (definition.contains("OutputDataConfig") &&
      !definition["OutputDataConfig"].contains("KmsKeyId")) {
    definition["OutputDataConfig"]["KmsKeyId"] = "";
  }
}

Json DescribeTuning(const Document& document, const std::string& region) {
  Json view = Json::object();
  if (auto kept = ParseJson(document.text)) view = (*kept)["request"];
  view.erase("Tags");
  const auto name = document.name;
  view["HyperParameterTuningJobName"] = name;
  view["HyperParameterTuningJobArn"] = Arn(region, name);
  view["HyperParameterTuningJobStatus"] = kStatus;
  view["FailureReason"] = kNotRun;
  view["CreationTime"] = Seconds(document.created);
  view["LastModifiedTime"] = Seconds(document.updated);
  view["HyperParameterTuningEndTime"] = Seconds(document.created);
  view["TrainingJobStatusCounters"] = {{"Completed", 0},
                                       {"InProgress", 0},
                                       {"RetryableError", 0},
                                       {"NonRetryableError", 0},
                                       {"Stopped", 0}};
  view["ObjectiveStatusCounters"] = {{"Succeeded", 0}, {"Pending", 0}, {"Failed", 0}};
  if (view.contains("TrainingJobDefinition")) {
    auto& definition = view["TrainingJobDefinition"];
    AddBothResources(definition);
    // The service tells the jobs what is optimised this way, and clients take it out again.
    const auto config = view.value("HyperParameterTuningJobConfig", Json::object());
    const auto objective = config.value("HyperParameterTuningJobObjective", Json::object());
    if (definition.is_object() && objective.contains("MetricName")) {
      definition["StaticHyperParameters"]["_tuning_objective_metric"] = objective["MetricName"];
    }
  }
  if (view.contains("TrainingJobDefinitions")) {
    for (auto& definition : view["TrainingJobDefinitions"]) AddBothResources(definition);
  }
  return view;
}

tl::expected<Document, AwsError> Stored(DoorContext& context, const Json& body) {
  ShapeCheck check;
  const auto name =
      check.Text(body, "HyperParameterTuningJobName", "", {1, 32, kTuningName}, Need::kRequired);
  if (auto error = check.Error()) return tl::unexpected(*error);
  auto found = context.documents.Find(kTuningKind, *name);
  if (!found) return tl::unexpected(Refusal(found.error()));
  if (!*found) {
    return tl::unexpected(AwsError{400, "ResourceNotFound", "Requested resource not found."});
  }
  return **found;
}

}  // namespace

void Service::CreateTuningJob(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto& body = asked.body;
  const auto name =
      check.Text(body, "HyperParameterTuningJobName", "", {1, 32, kTuningName}, Need::kRequired);
  CheckConfig(body, check);
  check.Object(body, "TrainingJobDefinition", "");
  const auto* definitions = check.List(body, "TrainingJobDefinitions", "", 10);
  size_t ranges = 0;
  if (const auto* config = check.Object(body, "HyperParameterTuningJobConfig", "")) {
    if (const auto* all = check.Object(*config, "ParameterRanges", "")) {
      CheckRanges(*all, check, ranges);
    }
  }
  for (size_t i = 0; definitions && i < definitions->size(); ++i) {
    if (const auto* all = check.Object((*definitions)[i], "HyperParameterRanges", "")) {
      size_t here = 0;
      CheckRanges(*all, check, here);
      ranges = std::max(ranges, here);
    }
  }
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  if (body.contains("TrainingJobDefinition") == body.contains("TrainingJobDefinitions")) {
    return answered(tl::unexpected(
        Invalid("give either TrainingJobDefinition or TrainingJobDefinitions")));
  }
  if (body.contains("TrainingJobDefinition")) {
    auto error = CheckObjective(body["HyperParameterTuningJobConfig"], body["TrainingJobDefinition"]);
    if (error) return answered(tl::unexpected(*error));
  }
  if (ranges > 30) {
    return answered(tl::unexpected(Invalid("at most 30 hyperparameters can be tuned at once")));
  }
  OnPool(
      [this, name = *name, asked]() -> Answer {
        auto created = context_.documents.Create(
            kTuningKind, name, DumpJson(Json({{"request", asked.body}})), context_.clock.Wall());
        if (!created && created.error().code == ErrorCode::kConflict) {
          return tl::unexpected(
              AwsError{400, "ResourceInUse", "there is a tuning job of this name already"});
        }
        if (!created) return tl::unexpected(Refusal(created.error()));
        return Json({{"HyperParameterTuningJobArn", Arn(asked.region, name)}});
      },
      answered);
}

void Service::DescribeTuningJob(Asked asked, Answered answered) {
  auto document = Stored(context_, asked.body);
  if (!document) return answered(tl::unexpected(document.error()));
  answered(DescribeTuning(*document, asked.region));
}

void Service::StopTuningJob(Asked asked, Answered answered) {
  auto document = Stored(context_, asked.body);
  if (!document) return answered(tl::unexpected(document.error()));
  answered(tl::unexpected(Invalid(
      std::string("The request was rejected because the tuning job is in status ") + kStatus)));
}

void Service::DeleteTuningJob(Asked asked, Answered answered) {
  auto document = Stored(context_, asked.body);
  if (!document) return answered(tl::unexpected(document.error()));
  OnPool(
      [this, name = document->name]() -> Answer {
        auto removed = context_.documents.Remove(kTuningKind, name);
        if (!removed) return tl::unexpected(Refusal(removed.error()));
        return Json::object();
      },
      answered);
}

void Service::ListTuningJobs(Asked asked, Answered answered) {
  ShapeCheck check;
  const auto page = PageOf(asked.body, check);
  const auto contains = check.Text(asked.body, "NameContains", "", {0, 63}).value_or("");
  const auto status = check.Text(asked.body, "StatusEquals", "", {}).value_or(kStatus);
  if (auto error = check.Error()) return answered(tl::unexpected(*error));
  OnPool(
      [this, page, contains, status, region = asked.region]() -> Answer {
        auto all = context_.documents.List(kTuningKind);
        if (!all) return tl::unexpected(Refusal(all.error()));
        Json rows = Json::array();
        for (const auto& document : *all) {
          if (status != kStatus || document.name.find(contains) == std::string::npos) continue;
          const auto view = DescribeTuning(document, region);
          Json row = Json::object();
          for (const char* key :
               {"HyperParameterTuningJobName", "HyperParameterTuningJobArn",
                "HyperParameterTuningJobStatus", "CreationTime", "LastModifiedTime",
                "HyperParameterTuningEndTime", "TrainingJobStatusCounters",
                "ObjectiveStatusCounters"}) {
            row[key] = view[key];
          }
          row["Strategy"] = view["HyperParameterTuningJobConfig"].value("Strategy", "");
          row["ResourceLimits"] =
              view["HyperParameterTuningJobConfig"].value("ResourceLimits", Json::object());
          rows.push_back(std::move(row));
        }
        return Cut(rows, page, "HyperParameterTuningJobSummaries");
      },
      answered);
}

void Service::ListTrainingJobsOfTuningJob(Asked asked, Answered answered) {
  auto document = Stored(context_, asked.body);
  if (!document) return answered(tl::unexpected(document.error()));
  answered(Json({{"TrainingJobSummaries", Json::array()}}));
}

}  // namespace athanor::sagemaker
