#include "door/sagemaker/tuning_spec.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/sagemaker/shapes.h"
#include "door/sagemaker/trials.h"
#include "tune/space.h"

namespace athanor::sagemaker {
namespace {

constexpr int64_t kMostJobs = 750;  // the service's own, when none is given
constexpr char kConfig[] = "HyperParameterTuningJobConfig";

// What is wrong is noted; the list of tune::Space otherwise.
class Ranges {
 public:
  Ranges(ShapeCheck& check, std::string prefix, std::string condition)
      : check_(check), prefix_(std::move(prefix)), condition_(std::move(condition)) {}

  void Read(const Json& ranges, Json& space) {
    const char* path = "parameterRanges";
    for (const char* kind : {"ContinuousParameterRanges", "IntegerParameterRanges"}) {
      const auto* list = check_.List(ranges, kind, path, 30);
      for (size_t i = 0; list && i < list->size(); ++i) {
        Numeric((*list)[i], Member(Below(path, kind), i), kind[0] == 'I', space);
      }
    }
    const auto* choices = check_.List(ranges, "CategoricalParameterRanges", path, 30);
    for (size_t i = 0; choices && i < choices->size(); ++i) {
      Choice((*choices)[i], Member("parameterRanges.categoricalParameterRanges", i), space);
    }
    numeric_ += space.size() - (choices ? choices->size() : 0);
  }
  size_t numeric() const { return numeric_; }

 private:
  void Add(Json parameter, Json& space) {
    if (!condition_.empty()) parameter["if"] = condition_;
    space.push_back(std::move(parameter));
  }
  void Numeric(const Json& range, const std::string& at, bool whole, Json& space) {
    const auto name = check_.Text(range, "Name", at, {1, 256}, Need::kRequired).value_or("");
    const auto low = check_.Text(range, "MinValue", at, {1, 256}, Need::kRequired);
    const auto high = check_.Text(range, "MaxValue", at, {1, 256}, Need::kRequired);
    const auto scale =
        check_
            .Text(range, "ScalingType", at,
                  {.one_of = {"Auto", "Linear", "Logarithmic", "ReverseLogarithmic"}})
            .value_or("Auto");
    if (!low || !high) return;
    const auto whose = " (of " + name + ")";
    char *low_end = nullptr, *high_end = nullptr;
    const double from = std::strtod(low->c_str(), &low_end);
    const double to = std::strtod(high->c_str(), &high_end);
    if (*low_end != 0 || *high_end != 0 || !(from <= to)) {
      return check_.Note(at + ".minValue", *low,
                         "Member must be a number not above maxValue " + *high + whose);
    }
    if (scale == "Logarithmic" && from <= 0) {
      return check_.Note(at + ".minValue", *low,
                         "Member must be above 0 for Logarithmic scaling" + whose);
    }
    if (scale == "ReverseLogarithmic" && (from < 0 || to >= 1 || whole)) {
      return check_.Note(
          at + ".maxValue", *high,
          "Member must lie within 0 <= x < 1 for ReverseLogarithmic scaling" + whose);
    }
    Json parameter = {{"name", prefix_ + name}, {"type", whole ? "int" : "float"}};
    parameter["low"] = from;
    parameter["high"] = to;
    parameter["scale"] = scale == "Linear"        ? "linear"
                         : scale == "Logarithmic" ? "log"
                         : scale == "Auto"        ? "auto"
                                                  : "reverse_log";
    Add(std::move(parameter), space);
  }
  void Choice(const Json& range, const std::string& at, Json& space) {
    const auto name = check_.Text(range, "Name", at, {1, 256}, Need::kRequired).value_or("");
    const auto* values = check_.List(range, "Values", at, 30, Need::kRequired);
    if (!values) return;
    Add({{"name", prefix_ + name}, {"type", "cat"}, {"choices", *values}}, space);
  }

  ShapeCheck& check_;
  std::string prefix_;
  std::string condition_;
  size_t numeric_ = 0;
};

class TuningReader {
 public:
  explicit TuningReader(const Json& body) : body_(body) {}

  tl::expected<StudySpec, AwsError> Run() {
    out_.origin = "sagemaker";
    out_.name =
        check_.Text(body_, "HyperParameterTuningJobName", "", {1, 32, kTuningName}, Need::kRequired)
            .value_or("");
    config_ = check_.Object(body_, kConfig, "", Need::kRequired);
    check_.Object(body_, "TrainingJobDefinition", "");
    check_.List(body_, "TrainingJobDefinitions", "", 10);
    if (config_) Config();
    if (auto error = check_.Error()) return tl::unexpected(*error);
    if (body_.contains("TrainingJobDefinition") == body_.contains("TrainingJobDefinitions")) {
      return tl::unexpected(Invalid("give either TrainingJobDefinition or TrainingJobDefinitions"));
    }
    for (auto step : {&TuningReader::Definitions, &TuningReader::Space, &TuningReader::Strategy,
                      &TuningReader::WarmStart}) {
      (this->*step)();
      if (auto error = check_.Error()) return tl::unexpected(*error);
      if (error_) return tl::unexpected(*error_);
    }
    return std::move(out_);
  }

 private:
  void Refuse(std::string message) {
    if (!error_) error_ = Invalid(std::move(message));
  }

  void Config() {
    const std::string path = "hyperParameterTuningJobConfig";
    strategy_ = check_
                    .Text(*config_, "Strategy", path,
                          {.one_of = {"Bayesian", "Random", "Hyperband", "Grid"}}, Need::kRequired)
                    .value_or("");
    early_ =
        check_.Text(*config_, "TrainingJobEarlyStoppingType", path, {.one_of = {"Off", "Auto"}})
            .value_or("Off");
    if (const auto seed = check_.Number(*config_, "RandomSeed", path, {0})) {
      out_.seed = static_cast<uint64_t>(*seed);
    }
    if (const auto* limits = check_.Object(*config_, "ResourceLimits", path, Need::kRequired)) {
      const auto at = path + ".resourceLimits";
      out_.parallel =
          check_.Number(*limits, "MaxParallelTrainingJobs", at, {1, kMostParallel}, Need::kRequired)
              .value_or(1);
      jobs_ = check_.Number(*limits, "MaxNumberOfTrainingJobs", at, {1, kMostTrials});
      if (auto span = check_.Number(*limits, "MaxRuntimeInSeconds", at, {120, 15'768'000})) {
        out_.budget_time = std::chrono::seconds(*span);
      }
    }
    if (config_->contains("Autotune") || body_.contains("Autotune")) {
      Refuse("Autotune is not available: give ParameterRanges");
    }
    const auto* until = check_.Object(*config_, "TuningJobCompletionCriteria", path);
    if (!until) return;
    const auto at = path + ".tuningJobCompletionCriteria";
    if (const auto target = until->find("TargetObjectiveMetricValue");
        target != until->end() && target->is_number()) {
      out_.target = target->get<double>();
    }
    if (const auto* best = check_.Object(*until, "BestObjectiveNotImproving", at)) {
      out_.no_improvement = check_
                                .Number(*best, "MaxNumberOfTrainingJobsNotImproving",
                                        at + ".bestObjectiveNotImproving", {3, kMostTrials})
                                .value_or(0);
    }
    if (const auto* convergence = check_.Object(*until, "ConvergenceDetected", at)) {
      out_.converge = convergence->value("CompleteOnConvergence", "") == "Enabled";
    }
  }

  // Every definition must report the same objective; each has its own ranges.
  void Definitions() {
    const bool several = body_.contains("TrainingJobDefinitions");
    definitions_ =
        several ? body_["TrainingJobDefinitions"] : Json::array({body_["TrainingJobDefinition"]});
    if (definitions_.empty()) return Refuse("TrainingJobDefinitions is empty");
    for (const auto& definition : definitions_) {
      const auto objective =
          definition.is_object() && definition.contains("TuningObjective")
              ? definition["TuningObjective"]
              : config_->value("HyperParameterTuningJobObjective", Json::object());
      const auto name = objective.is_object() ? objective.value("MetricName", "") : "";
      const bool maximize = objective.is_object() && objective.value("Type", "") == "Maximize";
      if (name.empty()) return Refuse("HyperParameterTuningJobObjective has no MetricName");
      if (!out_.metric.empty() && (out_.metric != name || out_.maximize != maximize)) {
        return Refuse("the definitions have different objectives: " + out_.metric + " and " + name);
      }
      out_.metric = name;
      out_.maximize = maximize;
      Objective(definition);
    }
  }

  // The objective must be a metric that the jobs' definition reads from their log.
  void Objective(const Json& definition) {
    const auto algorithm = definition.value("AlgorithmSpecification", Json::object());
    if (!algorithm.is_object() || !algorithm.contains("MetricDefinitions")) return;
    std::vector<std::string> known;
    for (const auto& metric : algorithm["MetricDefinitions"]) {
      known.push_back(metric.value("Name", ""));
      if (known.back() == out_.metric) return;
    }
    Refuse("The objective metric " + Printable(out_.metric) + " is not in MetricDefinitions: [" +
           Join(known, ", ") + "]");
  }

  void Space() {
    Json space = Json::array();
    if (!body_.contains("TrainingJobDefinitions")) {
      Ranges ranges(check_, "", "");
      if (const auto* all = check_.Object(*config_, "ParameterRanges", ""))
        ranges.Read(*all, space);
      numeric_ = ranges.numeric();
    } else {
      const auto names = DefinitionNames(body_);
      space.push_back({{"name", kDefinition}, {"type", "cat"}, {"choices", names}});
      for (size_t i = 0; i < definitions_.size(); ++i) {
        if (names[i].empty()) return Refuse("each of several definitions needs a DefinitionName");
        Ranges ranges(check_, names[i] + kOf, std::string(kDefinition) + " == " + names[i]);
        Json own = Json::array();
        if (const auto* all = check_.Object(definitions_[i], "HyperParameterRanges", "")) {
          ranges.Read(*all, own);
        }
        if (own.size() > 30) return Refuse("at most 30 hyperparameters can be tuned at once");
        numeric_ += ranges.numeric();
        for (auto& each : own) space.push_back(std::move(each));
      }
    }
    if (check_.Error() || error_) return;
    if (definitions_.size() == 1 && space.size() > 30) {
      return Refuse("at most 30 hyperparameters can be tuned at once");
    }
    if (space.empty()) return Refuse("ParameterRanges has no hyperparameter to tune");
    auto parsed = tune::Space::Parse(space);
    if (!parsed) return Refuse(parsed.error().what + ": " + parsed.error().why);
    out_.space = DumpJson(space);
    grid_ = tune::GridSize(*parsed);
  }

  void Strategy() {
    out_.max_trials = jobs_.value_or(kMostJobs);
    if (strategy_ == "Random") out_.strategy = tune::Strategy::kRandom;
    if (strategy_ == "Grid") {
      if (numeric_ > 0) return Refuse("Grid takes categorical hyperparameters only");
      const auto cells = static_cast<int64_t>(grid_.value_or(0));
      if (jobs_ && *jobs_ != cells) {
        return Refuse(
            fmt::format("MaxNumberOfTrainingJobs must be left out for Grid, or be {}", cells));
      }
      out_.strategy = tune::Strategy::kGrid;
      out_.max_trials = std::clamp<int64_t>(cells, 1, kMostTrials);
    }
    if (early_ == "Auto") out_.early.rule = EarlyStopSpec::Rule::kMedian;
    if (strategy_ == "Hyperband") Hyperband();
  }

  void Hyperband() {
    if (early_ == "Auto") {
      return Refuse(
          "TrainingJobEarlyStoppingType must be Off with Hyperband, which stops jobs itself");
    }
    const auto own = config_->value("StrategyConfig", Json::object())
                         .value("HyperbandStrategyConfig", Json::object());
    int64_t least = own.value("MinResource", int64_t{1}),
            most = own.value("MaxResource", int64_t{0});
    for (const char* name : {"epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs"}) {
      const auto given =
          definitions_[0].value("StaticHyperParameters", Json::object()).value(name, "");
      if (most == 0 && !given.empty()) {
        most = std::strtoll(given.c_str() + (given[0] == '"'), nullptr, 10);
      }
    }
    if (most <= least || least < 1 || most > 20'000) {
      return Refuse(
          "Hyperband needs MinResource below MaxResource (at most 20000), or a static "
          "hyperparameter epochs");
    }
    out_.early.rule = EarlyStopSpec::Rule::kHyperband;
    out_.early.first = least;
    out_.early.last = most;
  }

  void WarmStart() {
    const auto* warm = check_.Object(body_, "WarmStartConfig", "");
    if (!warm) return;
    const auto* parents =
        check_.List(*warm, "ParentHyperParameterTuningJobs", "warmStartConfig", 5, Need::kRequired);
    const auto type =
        check_.Text(*warm, "WarmStartType", "warmStartConfig",
                    {.one_of = {"IdenticalDataAndAlgorithm", "TransferLearning"}}, Need::kRequired);
    for (size_t i = 0; parents && i < parents->size(); ++i) {
      out_.warm_start.push_back(TuningKey((*parents)[i].value("HyperParameterTuningJobName", "")));
    }
    out_.transfer = type == "TransferLearning";
  }

  const Json& body_;
  const Json* config_ = nullptr;
  Json definitions_;
  ShapeCheck check_;
  StudySpec out_;
  std::string strategy_, early_;
  std::optional<int64_t> jobs_;
  std::optional<uint64_t> grid_;
  size_t numeric_ = 0;
  std::optional<AwsError> error_;
};

}  // namespace

std::string TuningKey(const std::string& name) { return "sagemaker:tuning:" + name; }

tl::expected<StudySpec, AwsError> ReadTuningRequest(const Json& body) {
  return TuningReader(body).Run();
}

std::vector<std::string> DefinitionNames(const Json& body) {
  if (!body.contains("TrainingJobDefinitions")) return {""};
  std::vector<std::string> names;
  for (const auto& each : body["TrainingJobDefinitions"]) {
    names.push_back(each.is_object() ? each.value("DefinitionName", "") : "");
  }
  return names;
}

}  // namespace athanor::sagemaker
